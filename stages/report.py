"""Write reports/: the page, the table, the records behind it and the summary for DVC."""

from bleuprint import command
from bleuprint.errors import run, say
from bleuprint.mlsync import sync
from bleuprint.report import write_reports
from bleuprint.settings import load


def main() -> None:
    command.names(__doc__)
    settings = load()
    write_reports(settings)
    try:
        list(sync(settings, make=False))
    except Exception as error:  # whatever happens to the view, the reports are written
        say(f"scores are not in MLflow ({error}): run bleuprint mlflow-sync", "note")


if __name__ == "__main__":
    run(main)
