from bleuprint.corpus.steps.filter_stats import read_filter_stats
from bleuprint.rules import EDITS as KNOWN_EDITS
from corpora import EDITS, PAIRS
from prepared import prepare

ENTITIES = (KNOWN_EDITS["entities"](),)


def test_sets_that_were_drawn_are_edited_once(tmp_path):
    train = [(f"Satz {i} &amp;lt;", f"sentence {i} &amp;lt;") for i in range(50)]
    made = prepare(tmp_path, {"train": train}, edits=ENTITIES)
    for name in ("train", "valid", "test.held-out"):
        assert all(" &lt;" in source for source, _ in made.text("tokens").pairs(name))


def test_sets_that_were_given_are_read_through_the_edits(tmp_path):
    given = [("Fisch &amp; Brot", "fish &amp; bread")]
    sets = {"train": PAIRS, "valid": given, "test.x": given}
    made = prepare(tmp_path, sets, edits=(*ENTITIES, *EDITS))
    for name in ("valid", "test.x"):
        assert list(made.text("split").pairs(name)) == given
        assert list(made.text("tokens").pairs(name)) == [("Fisch & Brot", "fish & bread")]


def test_each_side_is_edited_and_tokenized_in_its_language(tmp_path):
    pairs = [(f"""l'eau "claire", {i}""", f"""it's "clear", {i}""") for i in range(40)]
    punctuation = (KNOWN_EDITS["punctuation"](),)
    sets = {"train": pairs[2:], "valid": pairs[:1], "test.x": pairs[1:2]}
    made = prepare(tmp_path, sets, edits=punctuation, languages=("fr", "en"))
    # English has the comma inside the quotation marks
    for name, i in (("valid", 0), ("test.x", 1), ("train", 2)):
        tokens = next(iter(made.text("tokens").pairs(name)))
        assert tokens == (f"""l' eau " claire " , {i}""", f"""it 's " clear , " {i}""")


def test_the_pairs_of_all_sets_are_counted(tmp_path):
    pairs = [(f"Satz {i}", f"sentence {i}") for i in range(9)]
    sets = {"train": pairs[:5], "valid": pairs[5:8], "test.x": pairs[8:]}
    made = prepare(tmp_path, sets)
    counts = read_filter_stats(made.filter_stats("tokenize"))
    found = {name: (each.pairs_in, each.pairs_out) for name, each in counts.items()}
    assert found == {"train": (5, 5), "valid": (3, 3), "test.x": (1, 1)}
