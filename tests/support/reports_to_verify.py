"""Results and a dvc.lock made by hand, for the tests of `bleuprint verify`."""

from ruamel.yaml import YAML

from bleuprint.pipeline import verify
from bleuprint.pipeline.verify import open_report
from bleuprint.report.frame import RESULTS
from bleuprint.report.training_costs import costs_csv
from result_rows import changed, compared_with, record, records_from_rows

# The fingerprints of a training with other code, and of its translations.
TRAINED_WITH_OTHER_CODE = {"hypotheses_sha256": "99" * 32, "training_sha256": "77" * 32}


def write_report(root, bleu_of_small=33.0, corpus="news-en-de", **changes_of_small):
    """Write the results of two systems, tiny and small, on a test set called `first`.

    Args:
        root: The project's folder.
        bleu_of_small: BLEU of small; tiny has 30.
        corpus: The corpus of both.
        changes_of_small: What differs from the usual record of small, by the columns of `runs` in
            results.json, such as `hypotheses_sha256`.

    Returns:
        The project's folder.
    """
    tiny = record("tiny", corpus, "first", 30.0)
    small = record("small", corpus, "first", bleu_of_small, **compared_with("tiny", p=0.04))
    records = changed(records_from_rows(tiny, small), {"system": "small"}, **changes_of_small)
    results_file = root / RESULTS
    results_file.parent.mkdir(parents=True, exist_ok=True)
    records.save(results_file)
    results_file.with_name("costs.csv").write_text(costs_csv(records.runs))
    return root


def write_lock(root, smoothing=0.1, train_code="m", text="d", vocabulary="b", arithmetic="native"):
    """Write a dvc.lock with the stages of small on news-en-de.

    The weights follow from the label smoothing, the code and the vocabulary; what later stages read
    and write follows from the weights.

    Args:
        root: The project's folder.
        smoothing: The label smoothing of the training.
        train_code: The hash of the code of stages/train.py.
        text: The MD5 of the user's file inputs/a.en.
        vocabulary: The MD5 of the binary corpus, which follows from the vocabulary.
        arithmetic: The arithmetic of the training.
    """
    smoothing_number = float(str(smoothing)[:3])
    weights = f"w{smoothing_number}{train_code}{vocabulary}"
    training_settings = {
        "code.train": train_code,
        "runs.small.news-en-de.train": {"label_smoothing": smoothing, "clip": 1.0},
        "runs.small.news-en-de.arithmetic": arithmetic,
    }
    stages = {
        "score@small-news-en-de-1": lock_entry(
            deps={"data/test_stats": f"d{weights}", "results/h": f"h{weights}"},
            outs={"s.json": "s"},
        ),
        "test_stats@news-en-de": lock_entry(deps={}, outs={"data/test_stats": f"d{weights}"}),
        "translate@small-news-en-de-1": lock_entry(
            deps={"models/a": weights}, outs={"results/h": f"h{weights}"}
        ),
        "train@small-news-en-de-1": lock_entry(
            deps={"data/bin/x": vocabulary},
            outs={"models": weights, "results/training.json": f"t{text}{weights}"},
            params=training_settings,
        ),
        "learn_vocabulary@news-en-de": lock_entry(
            deps={},
            outs={"data/bin": vocabulary, "data/filter_stats/l.json": f"l{text}{train_code}"},
            params={"inputs.news-en-de": {"inputs/a.en": text}},
        ),
    }
    with (root / "dvc.lock").open("w") as file:
        YAML().dump({"schema": "2.0", "stages": stages}, file)


def lock_entry(deps, outs, params=None):
    """Return an entry of dvc.lock, for one stage.

    Args:
        deps: The MD5 of each dependency by path; they are filled up to 32 digits.
        outs: The MD5 of each output by path.
        params: The settings by dotted key; None for none.
    """
    entry = {"cmd": "c", "deps": lock_files(deps)}
    if params is not None:
        entry["params"] = {"reports/resolved.json": params}
    entry["outs"] = lock_files(outs)
    return entry


def lock_files(md5_by_path):
    """Return dependencies or outputs in the form of dvc.lock."""
    files = []
    for path, md5 in md5_by_path.items():
        files.append({"path": path, "hash": "md5", "md5": md5.rjust(32, "0"), "size": 1})
    return files


def verify_reports(first, second):
    """Compare the reports at two paths; return the verification."""
    verification = verify.compare_reports(open_report(str(first)), open_report(str(second)))
    assert len(verification.lines) <= 10
    return verification
