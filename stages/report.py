"""Write reports/: the page, the table, the records behind it and the summary for DVC."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.report.report import write_reports
from bleuprint.runtime.errors import run, say
from bleuprint.tracking.sync import sync


def main() -> None:
    stage_args.names(__doc__)
    settings = load_resolved()
    set_aside(settings)
    write_reports(settings)
    try:
        list(sync(settings, make=False))
    except Exception as error:  # whatever happens to the view, the reports are written
        say(f"scores are not in MLflow ({error}): run bleuprint record", "note")


if __name__ == "__main__":
    run(main)
