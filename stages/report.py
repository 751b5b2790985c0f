"""Write reports/: the page, the table, the records behind it and the summary for DVC."""

from multiprocessing import get_context

from bleuprint.config.experiment import Settings, load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.report.report import write_reports
from bleuprint.runtime.errors import run, say
from bleuprint.runtime.progress import working
from bleuprint.tracking.sync import sync


def main() -> None:
    stage_args.names(__doc__)
    settings = load_resolved()
    set_aside(settings)
    # beside the reports: to load MLflow and to open its database takes two seconds
    view = get_context("fork").Process(target=_show_scores, args=(settings,))
    view.start()
    try:
        with working("report"):
            write_reports(settings)
    finally:
        view.join()


def _show_scores(settings: Settings) -> None:
    """Log the scores to MLflow."""
    try:
        list(sync(settings, make=False))
    except Exception as error:  # whatever happens to the view, the reports are written
        say(f"scores are not in MLflow ({error}): run bleuprint record", "note")


if __name__ == "__main__":
    run(main)
