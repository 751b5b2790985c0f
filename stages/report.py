"""Write reports/: the page, the table, the records behind it and the summary for DVC."""

from multiprocessing import get_context

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import set_aside
from bleuprint.report.report import write_reports
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.tracking.sync import update_in_stage


def main() -> None:
    stage_args.names(__doc__)
    settings = load_resolved()
    set_aside(settings)
    # Results that the next run replaces, or that are in a temporary copy of the project (`dvc exp
    # run --temp`), are logged here or never. Where this stage is skipped, the commands log them.
    # Beside the reports, since to load MLflow and to open its database takes two seconds.
    view = get_context("fork").Process(target=update_in_stage, args=(settings,))
    view.start()
    try:
        with show_elapsed_time("report"):
            write_reports(settings)
    finally:
        view.join()


if __name__ == "__main__":
    run_main(main)
