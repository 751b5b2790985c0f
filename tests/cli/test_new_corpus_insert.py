"""The insertion of a new corpus into params.yaml, whose other lines stay."""

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.insert_corpus import Example, insert_corpus
from bleuprint.runtime.errors import UserError
from new_corpus import (
    FIVE_HUNDRED_PAIRS,
    analyze_pairs,
)
from params import PARAMS
from root import ROOT

TRAIN_SETTINGS = "{max_tokens: 9, tokens_per_update: 9, max_updates: 5}"
SYSTEMS_SECTION = f"systems:\n  other:\n    train: {TRAIN_SETTINGS}\n    average: {{last: 1}}\n"


@pytest.mark.parametrize("recipe", ["own", "phrasebook", "back-translation-phrasebook"])
def test_an_entry_is_inserted_after_the_last_corpus_and_all_other_lines_stay(project, recipe):
    """params.yaml is a copy of a recipe; its comments and blank lines stay as well."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
    (project / "corpora").symlink_to(ROOT / "corpora")
    path = project / "params.yaml"
    old_text = (ROOT / "recipes" / f"{recipe}.yaml").read_text(encoding="utf-8")
    path.write_text(old_text, encoding="utf-8")

    are_replaced = insert_corpus(path, new, None, SYSTEMS_SECTION)

    assert are_replaced == (False, False)  # neither the example corpus nor its systems
    new_text = path.read_text(encoding="utf-8")
    assert new_text.replace(f"\n{new.entry}", "") == old_text
    assert list(load_settings(path).corpora)[-1] == new.name
    # The line before is indented: it belongs to the last corpus, not to a comment on `systems`.
    text_before_entry = new_text.partition(f"\n{new.entry}")[0]
    assert text_before_entry.splitlines()[-1].startswith("  ")


def test_a_file_with_windows_line_ends_keeps_them_and_gets_them_in_its_new_lines(project):
    """Such a line ends with carriage return and newline."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
    path = project / "params.yaml"
    path.write_bytes(PARAMS.replace("\n", "\r\n").encode())

    insert_corpus(path, new, None, SYSTEMS_SECTION)

    content = path.read_bytes().decode()
    assert content.count("\r\n") == content.count("\n")
    assert load_settings(path).corpora[new.name] == new.corpus


@pytest.fixture
def example(project):
    """Return the example in the recipe `own`, which here has the content of PARAMS."""
    recipe = project / "recipes" / "own.yaml"
    recipe.write_text(PARAMS)
    return Example.from_recipe(recipe)


def test_the_example_of_a_recipe_is_its_corpus_and_its_systems(example):
    """The recipe has the text of PARAMS: the corpus `own` follows `corpora:`, systems come last."""
    example_start = PARAMS.index("  own:\n")
    example_end = PARAMS.index("systems:\n")

    assert example.corpora == PARAMS[example_start:example_end].rstrip()
    assert example.systems == PARAMS[example_end:]


def test_a_recipe_without_systems_has_an_example_without_systems(project):
    recipe = project / "recipes" / "own.yaml"
    example_start = PARAMS.index("  own:\n")
    example_end = PARAMS.index("systems:\n")
    recipe.write_text(PARAMS[:example_end])

    example = Example.from_recipe(recipe)

    example_corpora = PARAMS[example_start:example_end].rstrip()
    assert example == Example(example_corpora, systems="")


def test_an_unchanged_example_is_replaced(project, example):
    """params.yaml is a copy of the recipe: it begins with the example corpus and its systems."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
    path = project / "params.yaml"
    path.write_text(PARAMS)

    corpus_and_systems_are_replaced = insert_corpus(path, new, example, SYSTEMS_SECTION)

    assert corpus_and_systems_are_replaced == (True, True)
    text_before_example = PARAMS[: PARAMS.index("  own:\n")]
    assert path.read_text() == text_before_example + new.entry + SYSTEMS_SECTION


def test_an_example_corpus_that_the_user_changed_stays(project, example):
    """Only the systems, which are unchanged, are replaced."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
    path = project / "params.yaml"
    path.write_text(PARAMS.replace("valid: 0.05", "valid: 0.06"))

    corpus_and_systems_are_replaced = insert_corpus(path, new, example, SYSTEMS_SECTION)

    assert corpus_and_systems_are_replaced == (False, True)
    assert list(load_settings(path).corpora) == ["own", new.name]


def test_example_systems_that_the_user_changed_stay(project, example):
    """The user renamed the system `base` to `mine`.

    The example corpus is replaced: Windows line ends alone do not count as a change.
    """
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
    path = project / "params.yaml"
    path.write_bytes(PARAMS.replace("  base:", "  mine:").replace("\n", "\r\n").encode())

    corpus_and_systems_are_replaced = insert_corpus(path, new, example, SYSTEMS_SECTION)

    assert corpus_and_systems_are_replaced == (True, False)
    assert load_settings(path).trained_systems == ["mine"]


@pytest.mark.parametrize(
    ("old_line", "new_line", "message"),
    [
        pytest.param(
            "  own:\n",
            "  mine-en-de:\n",
            r"params\.yaml:4: corpus mine-en-de is already",
            id="corpus exists",
        ),
        pytest.param(
            "    tie_embeddings: all",
            "    x: 1",
            r"params\.yaml:\d+: .*x",
            id="unknown key",
        ),
        pytest.param(
            "systems:\n  base:\n",
            "systems:\n  base:\n    corpora: {own: {}}\n",
            "no system is",
            id="all systems name their corpora",
        ),
    ],
)
def test_params_yaml_stays_unchanged_if_an_entry_cannot_be_inserted(
    project, old_line, new_line, message
):
    """The new entry is mine-en-de. Each case changes a line of a valid params.yaml."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.en", "mine.de"))
    path = project / "params.yaml"
    content = PARAMS.replace(old_line, new_line)
    assert content != PARAMS
    path.write_text(content)

    with pytest.raises(UserError, match=message):
        insert_corpus(path, new, None, "")

    assert path.read_text() == content
    file_names = {entry.name for entry in project.iterdir()}
    assert file_names == {"params.yaml", "inputs", "recipes"}  # no temporary file
