"""bleuprint: from raw parallel text to a table of BLEU scores that anyone can reproduce."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__version__ = "0.1.0"


def results(path: "str | Path" = ".") -> "pd.DataFrame":
    """The results of the project in the folder `path`, of its last report, as a DataFrame.

    A row for each system, corpus, seed and test set; docs/report.md lists the columns. Raises
    UserError if there is no report.
    """
    from bleuprint.report.frame import results  # not before it is needed: it imports pandas

    return results(Path(path))
