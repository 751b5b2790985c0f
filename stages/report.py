"""Write reports/: the table, the records behind it and the summary for DVC."""

from bleuprint import command, fingerprint, tracking
from bleuprint.errors import run
from bleuprint.report import write_reports
from bleuprint.settings import load


def main() -> None:
    command.names(__doc__)
    settings = load()
    scores = [
        (
            fingerprint.of_training(
                record.fingerprints.settings, record.fingerprints.code, record.data.binary
            ),
            {
                f"test/{record.test}/bleu": record.bleu.score,
                f"test/{record.test}/chrf": record.chrf.score,
            },
        )
        for record in write_reports(settings)
    ]
    tracking.log_scores(settings.experiment, scores)


if __name__ == "__main__":
    run(main)
