"""bleuprint: from raw parallel text to a table of BLEU scores that anyone can reproduce.

docs/contributing.md describes the packages, and docs/code.md the style of the code.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.runtime.interrupts import terminate_on_interrupt

if TYPE_CHECKING:
    import pandas as pd

__version__ = "1.0.0"

terminate_on_interrupt()


def results(path: "str | Path" = ".") -> "pd.DataFrame":
    """Return the results of a project's last report as a DataFrame.

    It has a row for each metric of a system, corpus, seed and test set, with the facts of the
    training; docs/report.md lists the columns. A warning says if params.yaml has changed since the
    report was made.

    Args:
        path: The folder of the project.

    Raises:
        UserError: There is no report, or results.json contradicts itself.
    """
    import warnings

    # Imported here, because they import pandas, which takes time.
    from bleuprint.config.experiment import load_settings
    from bleuprint.report import frame, records
    from bleuprint.runtime.errors import UserError

    if not str(path).strip():
        raise UserError("the path is empty: is a variable not set?")
    root = Path(path)
    report_records = frame.load(root)
    params = root / "params.yaml"
    if params.exists():
        try:
            records.check_settings(report_records, load_settings(params), root / frame.RESULTS)
        except UserError as error:
            warnings.warn(str(error), stacklevel=2)
    return report_records.to_frame()
