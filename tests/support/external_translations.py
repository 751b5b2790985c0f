"""A project with an external system: settings, translations and their scores."""

import hashlib

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.decoding.copied_translations import copy_translations
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.score import score_run

# The external system online-a has a file of translations of the test set `first`, which has 40
# lines. An external system was not trained here; params.yaml names its files.
TEST_SETS = {"news-en-de": ("first", "second")}
RUN = Run("online-a", "news-en-de", 1)
FILE = "inputs/external/a.de"
SETTING = "systems.online-a.translations.first: "
REFERENCES = "data/split/news-en-de/test.first.de"
SOURCES = "data/split/news-en-de/test.first.en"
RESULTS = "results/online-a/news-en-de/1"
SCORES = f"{RESULTS}/scores.json"
FORTY_LINES = b"x\n" * 40
# The entry in params.yaml of a system that is trained here.
TRAINED_SYSTEM = trees._system(None)


def external_system(**sha256_by_test):
    """Return the entry of an external system in params.yaml.

    Args:
        sha256_by_test: The SHA-256 of FILE, by the test sets whose translations it contains.
    """
    translations = {}
    for test, sha256 in sha256_by_test.items():
        translations[test] = {"path": FILE, "sha256": sha256}
    return {"about": "system A", "translations": translations}


def write_file(root, content):
    """Write the translations of the external system, and return their SHA-256."""
    path = root / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def write_project(root, content):
    """Write the translations of the external system, and settings that name them.

    Returns:
        The settings.
    """
    sha256 = write_file(root, content)
    external = {"online-a": external_system(first=sha256)}
    return trees.settings_in(root, corpora=TEST_SETS, external=external)


def as_text(lines):
    """Return the content of a file with these lines."""
    return "".join(f"{line}\n" for line in lines).encode()


def copy_and_score(settings, root):
    """Do what the stages translate and score do."""
    copy_translations(settings, RUN, root)
    score_run(settings, *RUN, root)


def scores_of(root):
    """Read the scores of the test set `first`."""
    return read_json(root / SCORES)["first"]


def lines_of(path):
    """Return the lines of a file."""
    return path.read_text().split("\n")[:-1]


def translations_in(root):
    """Return 40 translations: the references without their first words."""
    return [line.partition(" ")[2] for line in lines_of(root / REFERENCES)]


def in_subwords(lines):
    """Divide the first word of each line, as BPE does."""
    return [line.replace(" ", "@@ ", 1) for line in lines]


def in_tokens(lines):
    """Separate the full stop of each line from the last word, as tokenizers do."""
    return [line.replace(".", " .") for line in lines]
