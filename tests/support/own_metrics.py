"""Metrics of own code for tests."""

from contributing import code_blocks
from root import ROOT

# The mean share of the reference's words that a translation contains, in percent.
WORD_RECALL = """\
from bleuprint.scoring.metric import MILLIONTHS, Metric, mean_of_millionths


def count_recall(test_set):
    counts = []
    for translation, reference in zip(test_set.hypotheses, test_set.references, strict=True):
        words = set(reference.split())
        share = len(words & set(translation.split())) / max(len(words), 1)
        counts.append((round(MILLIONTHS * share), 1))
    return counts


METRIC = Metric(label="Word recall", statistics=count_recall, value=mean_of_millionths)
"""


def exact_match_example():
    """Return the module own/exact_match.py of docs/own_code.md."""
    page = (ROOT / "docs" / "own_code.md").read_text("utf-8")
    (module,) = [block for block in code_blocks(page, "python") if "def count_equal" in block]
    return module
