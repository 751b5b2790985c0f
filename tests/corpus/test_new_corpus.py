"""new-corpus: entries that load, rules that suit, files that are refused."""

import random
import re

import pytest

from bleuprint.config.experiment import load
from bleuprint.config.insert_corpus import insert_corpus
from bleuprint.corpus import phrasebook
from bleuprint.corpus.download.fetch import Source
from bleuprint.corpus.guess_languages import guess_languages, language_of_name
from bleuprint.corpus.line_shift import first_shifted_line
from bleuprint.corpus.new_corpus import CHECKS, EDITS, draft, report
from bleuprint.corpus.tool_formats import tool_format
from bleuprint.rules import CHECKS as ALL_CHECKS
from bleuprint.rules import EDITS as ALL_EDITS
from bleuprint.runtime.errors import UserError
from corpora import TORTURE
from params import PARAMS

TEXTS = [list(phrasebook.sentences("valid", language)) for language in ("en", "de")]
GOOD = [list(pair) for pair in zip(*TEXTS, strict=True)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "params.yaml").write_text(PARAMS)
    return tmp_path


def written(project, pairs, names=("mine.en", "mine.de")):
    """The paths of two files with these pairs, as the command line gives them."""
    for side, name in enumerate(names):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (project / "inputs" / name).write_bytes(text.encode())
    return [(project / "inputs" / name).relative_to(project) for name in names]


def made(project, files):
    return draft(files).suggest(Source(None, project / "store", None), project / "work", 1)


def test_the_rules_that_are_named_exist_in_the_order_in_which_they_run():
    assert [name for name in ALL_EDITS if name in EDITS] == list(EDITS)
    assert [name for name in ALL_CHECKS if name in CHECKS] == list(CHECKS)


def test_planted_faults_are_counted_and_bring_their_rules(project):
    pairs = [*GOOD]
    pairs[10:20] = [[source, source] for source, _ in pairs[10:20]]  # copied
    pairs[30:34] = [[source, f"<b>{target}</b>"] for source, target in pairs[30:34]]
    pairs[40] = pairs[41]
    new = made(project, written(project, pairs))
    lines = list(report(new))
    assert lines[0] == f"{len(pairs)} pairs:"
    assert "  10 pairs would be dropped by `identical` (filter)" in lines
    assert "  4 pairs would be edited by `tags` (clean)" in lines
    assert "  1 pair would be dropped by `duplicate_pair` (dedup)" in lines
    assert insert_corpus(project / "params.yaml", new.name, new.entry) is None
    corpus = load().corpora["mine-en-de"]
    edits = {rule.name() for rule in corpus.clean}
    assert {"tags", "unicode", "non_printing"} <= edits and "mojibake" not in edits
    assert {"identical", "length", "ratio"} <= {rule.name() for rule in corpus.filter}
    assert {str(file.path) for file in corpus.files.sides().values()} == {
        "inputs/mine.en",
        "inputs/mine.de",
    }


def test_a_rule_that_drops_good_pairs_is_left_out(project):
    pairs = [*GOOD]
    pairs[:40] = [[source, f"{target} 17"] for source, target in pairs[:40]]
    new = made(project, written(project, pairs))
    assert "numbers" in new.left_out and "numbers" not in new.entry
    assert any("`numbers` (filter): too many, left out" in line for line in report(new))


def test_a_check_that_drops_all_pairs_is_left_out_and_the_others_tried_without_it(project):
    pairs = [*GOOD]
    pairs[:40] = [[source, f"{target} 17"] for source, target in pairs[:40]]
    new = made(project, written(project, pairs, ("mine.en", "mine.fr")))  # which is German
    assert set(new.left_out) == {"numbers", "language_id"}
    assert new.inspection.last.pairs_out > 0.9 * len(pairs)
    assert "language_id" not in new.entry and "numbers" not in new.entry
    lines = list(report(new))
    assert any("`language_id` (filter): too many, left out" in line for line in lines)


def test_text_of_which_too_little_would_be_left_is_refused_with_the_cause(project):
    for pairs, left, drops in (
        ([GOOD[0]] * 2000, 1, "1,999 by `duplicate_pair`"),
        ([[source, source] for source, _ in GOOD], 0, "500 by `identical`"),
        ([["", target] for _, target in GOOD], 0, "500 by `empty_side`"),
    ):
        files = written(project, pairs)
        with pytest.raises(UserError) as error:
            made(project, files)
        assert str(error.value) == (
            "inputs/mine.en and inputs/mine.de: at least 3 pairs are needed, and "
            f"{left} of {len(pairs):,} would be left; dropped are {drops}"
        )


@pytest.mark.parametrize(("pairs", "noted"), [(5, True), (500, False)])
def test_text_of_less_than_one_update_is_noted(project, pairs, noted):
    new = made(project, written(project, GOOD[:pairs]))
    assert new.train_pairs == pairs * 0.8
    notes = list(new.notes(load().systems))
    assert [note.startswith("about 4 pairs with ") for note in notes] == [True] * noted
    size = load().system("base").train.update_size[1]
    assert all(f"one update of base (train.tokens_per_update: {size}): lower" in n for n in notes)


def test_the_words_to_train_on_are_about_those_of_the_files(project):
    new = made(project, written(project, GOOD))
    words = sum(len(re.findall(r"\w+|[^\w\s]", target)) + 1 for _, target in GOOD)
    assert new.train_words == pytest.approx(words * 0.8, rel=0.02)


def test_odd_characters_and_names(project):
    pairs = [[f"{a}{odd}", f"{b}{odd} x"] for (a, b), odd in zip(GOOD, TORTURE, strict=False)]
    names = ("my \"text\" ü:#.en", "my \"text\" ü:#.de")  # fmt: skip
    new = made(project, written(project, pairs, names))
    assert new.pairs == len(TORTURE)
    insert_corpus(project / "params.yaml", new.name, new.entry)
    files = load().corpora["my-text-u-en-de"].files.sides()
    assert [file.path for file in files.values()] == [f"inputs/{name}" for name in names]


@pytest.mark.parametrize(
    ("stem", "name"),
    [("Übung", "Ubung"), ("Cafe\u0301_2", "Cafe-2"), ("文", "mine"), ("Текст", "mine")],
)
def test_the_name_of_the_corpus_has_the_letters_of_the_files(project, stem, name):
    assert draft(written(project, GOOD, (f"{stem}.en", f"{stem}.de"))).name == f"{name}-en-de"


def test_languages_by_name_and_by_text(project):
    english, german = TEXTS
    wrong = written(project, GOOD, ("a.fr", "a.de"))
    first, second = guess_languages(wrong, [english, german])
    assert (first.language, first.by_text, first.disagree) == ("fr", "en", True)
    assert second.share > 0.8
    (note,) = draft(wrong).notes()
    assert note.startswith("inputs/a.fr: fr by its name, which is written; en by its text")
    (note,) = draft(written(project, GOOD, ("a.chr", "a.de"))).notes()
    assert note.startswith("inputs/a.chr: en by its text, most likely so in")
    exchanged = written(project, GOOD, ("a.de", "a.en"))
    wanted = r"exchanged: rename inputs/a\.de, which holds en \(9\d% of.*a\.en, which holds de \("
    with pytest.raises(UserError, match=wanted):
        draft(exchanged)
    by_text = guess_languages(written(project, GOOD, ("one.txt", "two.txt")), [english, german])
    assert [(each.language, each.disagree) for each in by_text] == [("en", False), ("de", False)]
    with pytest.raises(UserError, match="both in language en"):
        guess_languages(written(project, GOOD, ("one.txt", "two.txt")), [english, english])
    with pytest.raises(UserError, match=r"one\.txt: unknown language"):
        guess_languages(written(project, GOOD, ("one.txt", "b.de")), [["", ""], german])


@pytest.mark.parametrize(
    ("name", "language"),
    [("mine.de", "de"), ("a.de-en.en", "en"), ("a-fr.txt", "fr"), ("de", None), ("x.txt", None)],
)
def test_the_language_of_a_name(project, name, language):
    assert language_of_name(project / name) == language


@pytest.mark.parametrize(("at", "missing"), [(0, 1), (7, 1), (120, 3), (299, 1)])
def test_the_place_of_missing_lines_is_found(at, missing):
    """Lengths of translations are 1.2 times as long, and vary by a tenth."""
    drawn = random.Random(at)
    source = [round(drawn.lognormvariate(4, 0.6)) for _ in range(300)]
    target = [round(length * 1.2 * drawn.uniform(0.9, 1.1)) for length in source]
    del target[at : at + missing]
    place = first_shifted_line(source, target)
    assert place is not None and abs(place - (at + 1)) <= 3
    assert first_shifted_line(target, source) == place


def test_lengths_that_say_nothing_name_no_place():
    drawn = random.Random(1)
    unrelated = [[round(drawn.lognormvariate(4, 0.6)) for _ in range(n)] for n in (300, 290)]
    assert first_shifted_line(*unrelated) is None
    assert first_shifted_line([5, 5, 5, 5], [5, 5]) is None and first_shifted_line([3], []) is None


def test_files_that_cannot_be_used_are_refused(project):
    good = written(project, GOOD)
    for name, content, message in (
        ("short.de", b"Ein Satz.\n", r"inputs/mine\.en has 500 lines and inputs/short\.de has 1: "),
        (
            "latin.de",
            "gut\nschön\n".encode("latin-1"),
            r"latin\.de:2: byte 4 .* like CP1252 .*: iconv",
        ),
        (
            "wide.de",
            "schön\n".encode("utf-16-le"),
            r"wide\.de: .* looks like UTF-16LE: iconv",
        ),
        ("a.de.gz", b"", r"a\.de\.gz: packed"),
    ):
        (project / "inputs" / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            made(project, [good[0], good[0].with_name(name)])
    (project / "out.de").write_bytes(b"x\n")
    with pytest.raises(UserError, match=r"out\.de: not below inputs/.*cp \"out\.de\" inputs/"):
        made(project, [good[0], (project / "out.de").relative_to(project)])
    with pytest.raises(UserError, match=r"inputs/none\.de: no such file"):
        made(project, [good[0], good[0].with_name("none.de")])
    with pytest.raises(UserError, match=r"few\.en: 2 lines: at least 3 pairs are needed"):
        draft(written(project, GOOD[:2], ("few.en", "few.de")))
    assert draft(written(project, GOOD[:3], ("few.en", "few.de"))).pairs == 3


def test_short_lines_do_not_tell_a_language(project):
    files = written(project, [["Hello.", "Gut."]] * 50, ("a.en", "a.de"))
    assert not list(draft(files).notes())


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ("the dog &apos;s house is well @-@ known .", "tokens of Moses"),
        ("ein Satz@@ ende .", "BPE"),
        ("ein Satz@@", "BPE"),
        ("\u2581ein \u2581Satz ende", "SentencePiece"),
        ('{"translation": {"de": "ein Satz"}}', "JSON"),
        ("00:00:01,000 --> 00:00:02,500", "subtitles"),
        ('msgstr "ein Satz"', "gettext"),
        ("  <source>ein Satz</source>", "XML"),
        ('"ein ""Satz"" mehr"\r', "spreadsheet"),
        ('"Ein Satz", sagte er, "mehr nicht."', None),
        ("Er schrieb an a@@b und {dies}: 3 --> 4 <b>Satz</b>", None),
    ],
)
def test_lines_of_other_tools_are_named(line, format):
    found = tool_format([*TEXTS[1], *[line] * 200])
    assert (found is None) if format is None else (format in found)
    assert tool_format([*TEXTS[1], *[line] * 20]) is None
