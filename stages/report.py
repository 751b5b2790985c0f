"""Write reports/: the table, the records behind it and the summary for DVC."""

from bleuprint import command
from bleuprint.errors import run
from bleuprint.report import write_reports
from bleuprint.results import Record
from bleuprint.settings import Settings, load
from bleuprint.tracking import Outcome, log_outcomes


def main() -> None:
    command.names(__doc__)
    settings = load()
    records = write_reports(settings)
    log_outcomes(settings.experiment, [_outcome(record, settings) for record in records])


def _outcome(record: Record, settings: Settings) -> Outcome:
    system = settings.system(record.system)
    scores = {"bleu": record.bleu.score, "chrf": record.chrf.score, "ter": record.ter.score}
    return Outcome(
        record.cell,
        record.fingerprints.training,
        {f"test/{record.test}/{name}": score for name, score in scores.items()},
        {"average": str(system.average), "decode": str(system.decode)},
    )


if __name__ == "__main__":
    run(main)
