"""Write the report: the tables, the HTML report, the records of all runs and the summary for DVC.

Reads reports/resolved.json, the results of all runs in results, and the statistics of corpora and
test sets in data.
Writes the files of reports/ except resolved.json, and logs the results to MLflow.
"""

from multiprocessing import get_context

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.pipeline.leftovers import move_leftovers
from bleuprint.report.report import write_reports
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.tracking.sync import update_in_stage


def main() -> None:
    """Write the report of all runs."""
    # `__doc__`, the text at the top of this file, is the help of this script.
    stage_args.parse_arguments(__doc__)
    settings = load_resolved_settings()
    move_leftovers(settings)
    # MLflow is updated now, because the next run may replace these results, and a temporary copy of
    # the project (`dvc exp run --temp`) will be removed. If DVC skips this stage, the commands
    # `reproduce` and `sync` update MLflow. Loading MLflow takes two seconds, so another process
    # does it while this one writes the reports.
    mlflow_update = get_context("fork").Process(target=update_in_stage, args=(settings,))
    mlflow_update.start()
    try:
        with show_elapsed_time("report"):
            write_reports(settings)
    finally:
        mlflow_update.join()


if __name__ == "__main__":
    run_main(main)
