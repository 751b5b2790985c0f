import pytest

from bleuprint.config.experiment import load
from bleuprint.config.insert_corpus import insert_corpus
from bleuprint.runtime.errors import UserError
from params import PARAMS
from root import ROOT

START, END = PARAMS.index("  own:\n"), PARAMS.index("systems:\n")
ENTRY = PARAMS[START:END].replace("  own:", "  new:")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "params.yaml"


def inserted(path, text, **given):
    path.write_bytes(text.encode())
    replaced = insert_corpus(path, "new", ENTRY, **given)
    return path.read_bytes().decode(), replaced


@pytest.mark.parametrize("recipe", ["own", "phrasebook", "back-translation-phrasebook"])
def test_all_other_lines_stay_as_they_are(path, recipe):
    before = (ROOT / "recipes" / f"{recipe}.yaml").read_text(encoding="utf-8")
    after, _ = inserted(path, before)
    assert after.replace(f"\n{ENTRY}", "") == before
    # before the comment on what follows
    assert after.partition(f"\n{ENTRY}")[0].splitlines()[-1].startswith("    ")
    assert list(load(path).corpora)[-1] == "new"


def test_line_ends_of_windows_and_deeper_entries(path):
    for text in (
        PARAMS.replace("\n", "\r\n"),
        PARAMS[:START] + PARAMS[START:END].replace("  ", "   ") + PARAMS[END:],
    ):
        after, _ = inserted(path, text)
        assert after.count("\r\n") in (0, after.count("\n"))
        new, own = (load(path).corpora[name] for name in ("new", "own"))
        assert new == own


def test_corpora_may_be_the_last_section_without_a_line_end(path):
    text = PARAMS[:START].removesuffix("corpora:\n") + PARAMS[END:] + "corpora:\n"
    after, _ = inserted(path, text + PARAMS[START:END].rstrip("\n"))
    assert list(load(path).corpora) == ["own", "new"] and after.endswith("incremental}}")


def test_the_entry_of_a_recipe_is_replaced_if_nobody_changed_it(path, tmp_path):
    example = tmp_path / "own.yaml"
    example.write_text(PARAMS)
    after, replaced = inserted(path, PARAMS, example=example)
    assert (replaced, list(load(path).corpora)) == ("own", ["new"])
    assert after == PARAMS.replace("  own:\n", "  new:\n")
    _, replaced = inserted(path, PARAMS.replace("valid: 0.05", "valid: 0.06"), example=example)
    assert (replaced, list(load(path).corpora)) == (None, ["own", "new"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  own:\n", "  new:\n", r"params\.yaml:4: corpora has an entry new already"),
        (
            "    tie_embeddings: all",
            "    tie_embeddings: all\n      x: 1",
            r"params\.yaml:\d+: .*x",
        ),
        ("systems:\n  base:\n", "systems:\n  base:\n    corpora: {own: {}}\n", "no system is tr"),
    ],
)
def test_what_cannot_be_inserted_is_refused_and_nothing_changes(path, old, new, message):
    text = PARAMS.replace(old, new)
    assert text != PARAMS
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        insert_corpus(path, "new", ENTRY)
    assert path.read_text() == text
    assert [each.name for each in path.parent.iterdir()] == [path.name]
