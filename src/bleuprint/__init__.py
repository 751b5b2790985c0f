"""bleuprint: from raw parallel text to a table of BLEU scores that anyone can reproduce."""

from pathlib import Path
from typing import TYPE_CHECKING

from bleuprint.runtime.interrupts import terminate_on_interrupt

if TYPE_CHECKING:
    import pandas as pd

__version__ = "1.0.0"

terminate_on_interrupt()


def results(path: "str | Path" = ".") -> "pd.DataFrame":
    """The results of the project in the folder `path`, of its last report, as a DataFrame.

    A row for each metric of a system, corpus, seed and test set, with the facts of its training;
    docs/report.md lists the columns. Warns if params.yaml has changed since the report was made.
    Raises UserError if there is no report, or if results.json contradicts itself.
    """
    import warnings

    # not before they are needed: they import pandas
    from bleuprint.config.experiment import load_settings
    from bleuprint.report import frame, records
    from bleuprint.runtime.errors import UserError

    if not str(path).strip():
        raise UserError("the path is empty: is a variable not set?")
    root = Path(path)
    found = frame.load(root)
    if (params := root / "params.yaml").exists():
        try:
            records.check_settings(found, load_settings(params), root / frame.RESULTS)
        except UserError as error:
            warnings.warn(str(error), stacklevel=2)
    return found.to_frame()
