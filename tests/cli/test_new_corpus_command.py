"""new-corpus: entries that load, what is refused, and README.md's how-to in a project of `own`."""

import functools
import gzip
import re
import shlex
import unicodedata
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from dvc.repo import Repo
from ruamel.yaml import YAML

from bleuprint.cli.main import command_parser
from bleuprint.config.experiment import load_settings
from bleuprint.corpus import phrasebook
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.insert_corpus import Example, insert_corpus
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.pipeline.resolve import md5_of_input_files
from bleuprint.runtime.errors import UserError
from bleuprint.text.language_likelihoods import LanguageLikelihoods
from bleuprint.training import fitted_systems
from corpora import TORTURE
from params import PARAMS
from root import ROOT

OWN_RECIPE = (ROOT / "recipes" / "own.yaml").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
ENGLISH_SENTENCES = list(phrasebook.sentences("valid", "en"))
GERMAN_SENTENCES = list(phrasebook.sentences("valid", "de"))
# English and German sentences.
FIVE_HUNDRED_PAIRS = list(zip(ENGLISH_SENTENCES, GERMAN_SENTENCES, strict=True))
EXAMPLE_START, EXAMPLE_END = PARAMS.index("  own:\n"), PARAMS.index("systems:\n")
TRAIN_SETTINGS = "{max_tokens: 9, tokens_per_update: 9, max_updates: 5}"
SYSTEMS_SECTION = f"systems:\n  other:\n    train: {TRAIN_SETTINGS}\n    average: {{last: 1}}\n"


@pytest.fixture(autouse=True, scope="module")
def languages_identified_once():
    """Identify the languages of equal sentences once, since most tests have the same text."""
    likelihoods = LanguageLikelihoods.likelihoods

    @functools.cache
    def cached_likelihoods(model, sentences):
        return likelihoods(model, sentences)

    def likelihoods_from_cache(model, sentences):
        return cached_likelihoods(model, tuple(sentences))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageLikelihoods, "likelihoods", likelihoods_from_cache)
        yield


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Return the current folder: a project with the recipe `own` and an empty folder inputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fitted_systems, "seconds_per_pair", lambda *_: 0.01)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "recipes").mkdir()
    for name in ("recipes/own.yaml", "params.yaml"):
        (tmp_path / name).write_text(OWN_RECIPE, encoding="utf-8")
    return tmp_path


# What new-corpus ends with: of the 500 pairs a tenth, 50, is the test set.
# The lines that new-corpus ends with. Of 500 pairs, a tenth are valid and a tenth are test.
LAST_LINES = [
    r"^500 of 500 pairs remain after the rules: train 400, valid 50, test 50$",
    r"^small trains for at most [\d,]+ updates, [\d.]+ epochs: \d+ minutes$",
    r"^medium trains for at most ",
    r"^forecast for \S+, without other corpora: \d+ minutes?, on \d+ idle cores? of this machine$",
    r"raise its train\.max_updates",
    r"^400 training pairs are few: ",
    r"^next: state the license",
    r"^next: bleuprint inspect mine-de-en ",
    r"^next: make reproduce ",
]


def run_command(line):
    """Run a line such as `bleuprint check` in this process."""
    _, commands = command_parser()
    _, name, *arguments = shlex.split(line)
    options = commands.choices[name].parse_args(arguments)
    options.command(options)


def write_pairs(project, pairs, names=("mine.en", "mine.de")):
    """Write pairs of sentences to two files in inputs/, which are named; return their paths."""
    paths = []
    for side, name in enumerate(names):
        path = project / "inputs" / name
        path.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
        paths.append(path.relative_to(project))
    return paths


def analyze_pairs(project, pairs, names=("mine.en", "mine.de"), languages=None):
    """Write pairs of sentences to two files in inputs/; return the entry that is made of them.

    Args:
        project: The folder of the project.
        pairs: The sentences, source and target.
        names: The names of the two files.
        languages: The languages of source and target; None reads them from the names.
    """
    return NewCorpus.from_files(write_pairs(project, pairs, names), languages)


def swap_sides(pairs):
    """Return the pairs with source and target exchanged."""
    return [(target, source) for source, target in pairs]


def test_the_command_of_the_readme_adds_an_entry_and_says_what_comes_next(project, capsys):
    (line,) = re.findall(r"(?m)^\$ (bleuprint new-corpus .*)", README)
    write_pairs(project, swap_sides(FIVE_HUNDRED_PAIRS), ("mine.de", "mine.en"))

    run_command(line)

    output = capsys.readouterr()
    first_lines = "500 pairs; params.yaml has a new entry in place of the example:\n\n"
    assert output.out.startswith(f"{first_lines}  mine-de-en:\n")
    assert output.err == (
        "bleuprint: note: the test set has only 50 pairs, and systems are compared from 100 on. "
        "Add text, or name a test set of your own in files.tests\n"
    )
    entry = output.out.removeprefix(first_lines).partition("\n\n")[0]
    params = (project / "params.yaml").read_text(encoding="utf-8")
    assert entry in params
    assert "  mine-de-en:" not in params.replace(entry, "")
    last_lines = output.out.splitlines()[-len(LAST_LINES) :]
    for output_line, pattern in zip(last_lines, LAST_LINES, strict=True):
        assert re.search(pattern, output_line), output_line


def test_the_entry_that_new_corpus_adds_is_valid(project, capsys):
    write_pairs(project, FIVE_HUNDRED_PAIRS)
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    capsys.readouterr()

    run_command("bleuprint check")

    output = capsys.readouterr()
    assert output.out == "own: params.yaml is valid\n"
    assert "no such file" not in output.err  # `check` notes entries whose files are missing.
    assert list(load_settings().trained_systems_on("mine-en-de")) == ["small", "medium"]


def test_the_same_files_cannot_be_added_twice(project):
    write_pairs(project, FIVE_HUNDRED_PAIRS)
    line = "bleuprint new-corpus inputs/mine.en inputs/mine.de"
    run_command(line)

    with pytest.raises(UserError, match="corpus mine-en-de is already defined: remove or"):
        run_command(line)


def test_a_second_corpus_keeps_the_systems_of_the_first(project, capsys):
    write_pairs(project, FIVE_HUNDRED_PAIRS)
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    write_pairs(project, FIVE_HUNDRED_PAIRS, ("second.en", "second.de"))
    capsys.readouterr()

    run_command("bleuprint new-corpus inputs/second.en inputs/second.de")

    assert "params.yaml keeps its systems, whose sizes do not fit" in capsys.readouterr().err


def test_a_text_that_tokenization_changes_gets_a_note_with_its_bleu_ceiling(project, capsys):
    """The ceiling is the BLEU of the references after tokenization and detokenization."""
    pairs = []
    for english, german in FIVE_HUNDRED_PAIRS:
        # Detokenized, both forms of quotation are equal: Moses prints them without the spaces.
        pairs.append((f"' {english} '", f"' {german} '"))
        pairs.append((f"'{english}'", f"'{german}'"))
    write_pairs(project, pairs)

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    notes = capsys.readouterr().err
    assert re.search(r"note: BLEU ceiling of the test set is \d\d\.\d \(tokenize -\d", notes)
    assert "with vocabulary.sentencepiece restores all text" in notes


def test_files_with_odd_names_and_odd_characters_become_an_entry(project):
    """TORTURE has characters that software often mistakes, such as separators and quotes."""
    (project / "params.yaml").write_text(PARAMS)
    odd_texts = TORTURE * 10
    pairs = []
    for (english, german), odd_text in zip(FIVE_HUNDRED_PAIRS, odd_texts, strict=False):
        pairs.append((f"{english}{odd_text}", f"{german}{odd_text} x"))
    assert len(pairs) == len(odd_texts)
    names = ['my "text" ü:#.en', 'my "text" ü:#.de']

    new = analyze_pairs(project, pairs, names)
    insert_corpus(project / "params.yaml", new, None, "")

    assert new.pairs == len(pairs)
    files = load_settings().corpora["my-text-u-en-de"].files.files_by_name()
    assert [file.path for file in files.values()] == [f"inputs/{name}" for name in names]


def test_the_text_of_an_entry_is_named_after_its_files_without_languages(project):
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, ("talks_2-en.txt", "talks_2-de.txt"))

    assert new.name == "talks-2-en-de"
    assert list(new.corpus.files.train) == ["talks-2"]
    assert list(new.corpus.license_and_citation) == ["talks-2"]
    bibtex = new.corpus.license_and_citation["talks-2"].bibtex
    assert bibtex == "@misc{talks-2, title = {{talks-2}}}"


def rule_names(new):
    """Return the names of the filter rules of a new entry."""
    return {rule.name() for rule in new.corpus.filter}


def test_only_a_text_of_enough_pairs_is_filtered_by_word_alignment(project):
    of_500_pairs = rule_names(analyze_pairs(project, FIVE_HUNDRED_PAIRS))
    of_1000_pairs = rule_names(analyze_pairs(project, FIVE_HUNDRED_PAIRS * 2))

    assert of_1000_pairs - of_500_pairs == {"word_alignment"}


def test_a_language_that_cannot_be_identified_is_not_filtered_by_language_id(project):
    """Cherokee (chr) is not among the languages that can be identified."""
    names = ("a.en", "a.de")
    of_german = rule_names(analyze_pairs(project, FIVE_HUNDRED_PAIRS, names))
    of_cherokee = rule_names(analyze_pairs(project, FIVE_HUNDRED_PAIRS, names, ("en", "chr")))

    assert of_german - of_cherokee == {"language_id"}


@pytest.mark.parametrize(
    ("names", "languages", "corpus_name"),
    [
        pytest.param(("Übung.en", "Übung.de"), None, "Ubung-en-de", id="accent"),
        pytest.param(
            ("Cafe\u0301_2-en.txt", "Cafe\u0301_2-de.txt"), None, "Cafe-2-en-de", id="decomposed"
        ),
        pytest.param(("文.en", "文.de"), None, "mine-en-de", id="no Latin letter"),
        pytest.param(("2020.en", "2020.de"), None, "2020-en-de", id="number"),
        pytest.param(("null.en", "null.de"), None, "null-en-de", id="word of YAML"),
        pytest.param(("a.de-en.en", "a.de-en.de"), None, "a-en-de", id="languages twice"),
        pytest.param(("one.txt", "two.txt"), ("en", "chr"), "mine-en-chr", id="nothing in common"),
    ],
)
def test_a_corpus_is_named_after_its_files_and_languages(project, names, languages, corpus_name):
    """The part that both names share, in ASCII; `mine` where nothing is left."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names, languages)

    assert new.name == corpus_name
    assert list(new.corpus.languages) == list(new.languages)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("short.de", b"Ein Satz.\n", r"inputs/mine\.en has 500 lines and inputs/short\.de has 1: "),
        ("latin.de", "gut\nschön\n".encode("latin-1"), r"latin\.de:2: byte 4 .* CP1252 .*: iconv"),
        ("\udcff.de", b"Satz.\n" * 500, r": its name is not UTF-8: rename it$"),
        (
            "x.txt",
            b"",
            r"x\.txt: the name .* no language\. Name both .*: --languages en de$",
        ),
        ("none.de", None, r"inputs/none\.de: no such file"),
        ("none.csv", None, r"inputs/none\.csv: no such file"),
        ("../out.de", b"", r"must be below inputs/: copy"),
        ("mine.en", None, r"inputs/mine\.en is given twice: name the source file, then"),
        ("other.en", b"A sentence.\n", r"both names end in en\. .* --languages en de"),
        ("empty.de", b"", r"inputs/mine\.en has 500 lines and inputs/empty\.de has 0: "),
        ("", None, r"inputs: a folder; name a text file"),
        ("few.de few.en", b"Ja.\n" * 99, r"two files, source and target, or one \.tsv or \.tmx"),
    ],
)
def test_files_that_cannot_be_used_are_refused(project, name, content, message):
    analyze_pairs(project, FIVE_HUNDRED_PAIRS)
    if content is not None:
        (project / "inputs" / name.split()[0]).write_bytes(content)
    with pytest.raises(UserError, match=message):
        run_command(f"bleuprint new-corpus inputs/mine.en inputs/{name}")


def test_the_message_about_an_extra_line_says_about_where_it_is(project):
    english_path, german_path = write_pairs(project, FIVE_HUNDRED_PAIRS)
    lines = german_path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines.insert(300, "\n")  # as line 301
    german_path.write_text("".join(lines), encoding="utf-8")

    with pytest.raises(
        UserError, match=r"de has 501: not parallel; .* at about line (\d+)"
    ) as error:
        run_command(f"bleuprint new-corpus {english_path} {german_path}")

    line_number = int(str(error.value).rpartition(" ")[2])
    assert abs(line_number - 301) <= 3


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        pytest.param(
            FIVE_HUNDRED_PAIRS[:99],
            "99 pairs are too few to train, validate and test on: at least 100",
            id="too few",
        ),
        pytest.param(
            swap_sides(FIVE_HUNDRED_PAIRS),
            r"100% of the pairs are de and en, not en and de\. .*: --languages de en$",
            id="languages exchanged",
        ),
        pytest.param([("", "")] * 100, "no pair has text on both sides", id="empty"),
        pytest.param(
            [(sentence, sentence) for sentence in ENGLISH_SENTENCES],
            "mine.de: source and target are the same text",
            id="copies",
        ),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(project, pairs, message):
    with pytest.raises(UserError, match=message):
        analyze_pairs(project, pairs, names=("mine.en", "mine.de"))


def test_files_in_the_other_order_of_the_languages_are_refused(project):
    with pytest.raises(UserError) as error:
        analyze_pairs(project, FIVE_HUNDRED_PAIRS, ("a.txt", "b.txt"), ("de", "en"))
    assert str(error.value) == (
        "inputs/a.txt and inputs/b.txt: 100% of the pairs are en and de, not de and en. "
        "Name the two files in the other order, or use: --languages en de"
    )


def test_pairs_in_another_language_than_the_name_says_are_noted(project):
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, ("mine.fr", "mine.de"))

    assert re.search("[01]% of the pairs look like fr and de. .*--languages", new.language_note)


def test_pairs_in_another_language_than_the_user_says_are_noted(project):
    """Who has used --languages is told to look at the text, not to use --languages."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, languages=["fr", "de"])

    assert re.search("[01]% of the pairs look like fr and de. Look at the", new.language_note)
    assert "--languages" not in new.language_note


def test_a_language_that_cannot_be_identified_is_noted(project, capsys):
    analyze_pairs(project, FIVE_HUNDRED_PAIRS, languages=["xx", "de"])

    assert "xx: not a language that the filter language_id knows" in capsys.readouterr().err


def test_a_target_that_is_shifted_by_a_line_is_noted(project, capsys):
    shifted_german = [*GERMAN_SENTENCES[1:], ""]

    analyze_pairs(project, list(zip(ENGLISH_SENTENCES, shifted_german, strict=True)))

    note = re.search(
        r"do not fit line by line: lines (\d+) to (\S+) fit the target 1 line earlier",
        capsys.readouterr().err,
    )
    first_line = int(note[1])
    last_line = int(note[2].replace(",", ""))
    assert first_line <= 10
    assert last_line >= len(ENGLISH_SENTENCES) - 10


def test_a_good_text_gets_no_note(project, capsys):
    analyze_pairs(project, FIVE_HUNDRED_PAIRS)

    assert not capsys.readouterr().err


def test_a_text_with_an_empty_line_after_each_sentence_gets_no_note(project, capsys):
    double_spaced_pairs = []
    for pair in FIVE_HUNDRED_PAIRS:
        double_spaced_pairs.append(pair)
        double_spaced_pairs.append(("", ""))

    analyze_pairs(project, double_spaced_pairs)

    assert not capsys.readouterr().err


@pytest.fixture
def eight_hundred_pairs(project):
    """Write 500 good pairs, 200 whose sides are equal, and 100 of the good ones again."""
    copies = []
    for number, english in enumerate(ENGLISH_SENTENCES[:200]):
        copies.append((f"{english} {number}", f"{english} {number}"))
    write_pairs(project, [*FIVE_HUNDRED_PAIRS, *copies, *FIVE_HUNDRED_PAIRS[:100]])


@pytest.mark.usefixtures("eight_hundred_pairs")
def test_pairs_that_remain_after_the_rules_are_counted(capsys):
    """Of the 800 pairs, 200 are copies and 100 duplicates; of the other 500 a tenth is held out."""
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    output = capsys.readouterr().out
    count_line = "500 of 800 pairs remain after the rules: train 400, valid 50, test 50"
    assert count_line in output.splitlines()
    assert "BLEU will be known" not in output  # The note on few test pairs says enough.
    assert "400 training pairs are few" in output


@pytest.mark.usefixtures("eight_hundred_pairs")
def test_rules_that_drop_many_pairs_are_noted(capsys):
    """Of the 800 pairs, dedup drops 100 duplicates, then the filter drops 200 copies of 700."""
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 3  # The third one says that the test set is small.
    assert "rule duplicate_pair of dedup drops 100 of 800 pairs (12%)" in notes[0]
    assert "rule identical of filter drops 200 of 700 pairs (29%)" in notes[1]
    assert notes[1].endswith("To see some: bleuprint inspect mine-en-de")


@pytest.mark.usefixtures("eight_hundred_pairs")
def test_inspect_counts_the_same_pairs_as_new_corpus(capsys):
    """Of the 800 pairs, 500 remain, as new-corpus says."""
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    capsys.readouterr()

    run_command("bleuprint inspect mine-en-de --samples 1")

    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line == "pairs that remain: train 400, valid 50, test.held-out 50"


def test_the_precision_of_bleu_is_stated_for_a_test_set_of_100_pairs(project, capsys):
    """BLEU is known to ±1.6 on 1,000 pairs, so to 1.6 * sqrt(10) = ±5.06 on 100."""
    pairs = []
    for number in (1, 2):
        for english, german in FIVE_HUNDRED_PAIRS:
            pairs.append((f"{english} {number}", f"{german} {number}"))
    write_pairs(project, pairs)  # 1,000 pairs, of which a tenth is the test set

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    output = capsys.readouterr()
    assert re.search(r"BLEU will be known to about ±5\.\d, by a test set of \d+ pairs", output.out)
    assert "the test set has only" not in output.err


def test_a_test_set_of_two_word_lines_is_noted_as_too_short_for_bleu(project, capsys):
    """Lines of two words have no 4-grams: sacreBLEU gives even the references a score of 0."""
    pairs = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
        pairs.append((f"{english.split()[1]} x{number}a", f"{german.split()[1]} x{number}a"))
    write_pairs(project, pairs)

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de --languages en chr")

    notes = capsys.readouterr().err
    assert "note: BLEU ceiling of the test set is 0.0 (line length -100.0): BLEU needs" in notes
    assert "compare systems by chrF2" in notes


def names_of_places(count):
    """English and Croatian names, which the filter language_id takes for other languages."""
    return [(f"Nikola Tesla {n} Belgrade", f"Nikola Tesla {n} Beograd") for n in range(count)]


@pytest.mark.parametrize("sentence_count", [0, 30])
def test_language_id_is_omitted_if_it_alone_leaves_too_few_pairs(project, capsys, sentence_count):
    """It drops all 300 pairs of names; 30 sentences are too few for a useful test set."""
    sentences = []
    for number in range(100, 100 + sentence_count):
        english = f"{number} dogs are running through the green forest."
        croatian = f"{number} pasa trče kroz šumu."
        sentences.append((english, croatian))
    pair_count = 300 + sentence_count
    write_pairs(project, [*names_of_places(300), *sentences], ("nm.en", "nm.hr"))

    run_command("bleuprint new-corpus inputs/nm.en inputs/nm.hr")

    output = capsys.readouterr()
    (note,) = [line for line in output.err.splitlines() if "language" in line]
    assert re.search(rf"language_id would drop 3\d\d of {pair_count} pairs, so the entry", note)
    assert note.endswith("If it is not, remove the entry and add: --languages SOURCE TARGET")
    rules = [rule.name() for rule in load_settings().corpora["nm-en-hr"].filter]
    assert rules == ["identical", "length", "length_ratio"]
    assert f"{pair_count} of {pair_count} pairs remain after the rules" in output.out


def test_who_names_the_languages_is_not_advised_to_name_them(project, capsys):
    write_pairs(project, names_of_places(300), ("a.txt", "b.txt"))

    run_command("bleuprint new-corpus inputs/a.txt inputs/b.txt --languages en hr")

    notes = capsys.readouterr().err
    assert "language_id would drop 300 of 300 pairs, so the entry omits it" in notes
    assert "--languages" not in notes


def test_language_id_stays_if_it_leaves_enough_pairs(project, capsys):
    """Of 1,100 pairs, more than half are names, but at least 500 pairs are sentences."""
    write_pairs(project, [*names_of_places(600), *FIVE_HUNDRED_PAIRS])

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    rules = {rule.name() for rule in load_settings().corpora["mine-en-de"].filter}
    assert "language_id" in rules
    assert "would drop" not in capsys.readouterr().err


def test_a_text_of_which_the_rules_leave_nothing_is_refused(project, capsys):
    """Each pair repeats the first one, so that dedup leaves one pair even without language_id."""
    write_pairs(project, [FIVE_HUNDRED_PAIRS[0]] * 500, ("mine.fr", "mine.ru"))
    params = (project / "params.yaml").read_bytes()

    with pytest.raises(
        UserError, match=r"leave too few of the 500 pairs .* dropped by language_id 1"
    ):
        run_command("bleuprint new-corpus inputs/mine.fr inputs/mine.ru")

    assert (project / "params.yaml").read_bytes() == params
    assert "0% of the pairs look like fr and ru" in capsys.readouterr().err


def write_table(path):
    """Write FIVE_HUNDRED_PAIRS as a table: number, English, German, score from 0 to 1.

    One score contains a carriage return, which does not end a row.
    """
    rows = []
    for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS, 1):
        score = "0.5\r0" if number == 250 else f"{number / 500:.2f}"
        rows.append(f"{number}\t{english}\t{german}\t{score}\n")
    content = "".join(rows).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["memory.en-de.tsv", "packed.en-de.tsv.gz"])
def test_source_and_target_are_the_columns_of_a_table_that_contain_words(project, name):
    """The table has four columns: number, English, German, score."""
    write_table(project / "inputs" / name)

    new = NewCorpus.from_files([Path("inputs", name)], None)

    (table,) = new.corpus.files.train.values()
    # Columns count from 1: 2 is English, 3 is German.
    assert table.columns == (2, 3)


@pytest.mark.parametrize("name", ["memory.en-de.tsv", "packed.en-de.tsv.gz"])
def test_each_row_of_a_table_is_a_sentence_pair(project, name):
    """The order does not matter: NewCorpus draws its sample."""
    write_table(project / "inputs" / name)

    new = NewCorpus.from_files([Path("inputs", name)], None)

    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)


@pytest.mark.parametrize("pairs", [100, 4_999, 150_000, 3_000_000, 14_000_000, 40_000_000])
@pytest.mark.parametrize(("name", "enough_pairs"), [("valid", 1000), ("test", 2000)])
def test_a_held_out_set_has_enough_pairs_or_its_largest_share(pairs, name, enough_pairs):
    """A small text cannot spare enough pairs: a tenth is held out, or a twentieth above 5,000."""
    largest_share = 0.1 if pairs <= 5000 else 0.05
    rounding = 2  # Shares are written with few digits.

    new = NewCorpus([Path("a.de"), Path("a.en")], ("de", "en"), pairs, FIVE_HUNDRED_PAIRS)

    share = YAML(typ="safe").load(new.entry)["a-de-en"]["split"][name]
    held_out_pairs = round(share * pairs)
    has_enough = abs(held_out_pairs - enough_pairs) <= rounding
    assert has_enough or share == largest_share
    assert held_out_pairs <= enough_pairs + rounding


@pytest.mark.parametrize("file_format", ["tsv", "tmx"])
def test_one_file_can_contain_both_languages(project, file_format):
    if file_format == "tsv":
        content = "".join(f"{english}\t{german}\tnote\n" for english, german in FIVE_HUNDRED_PAIRS)
    else:
        content = tmx([[("en", english), ("de", german)] for english, german in FIVE_HUNDRED_PAIRS])
    path = project / "inputs" / f"memory.en-de.{file_format}"
    path.write_text(content, encoding="utf-8")

    new = NewCorpus.from_files([path.relative_to(project)], None)

    assert new.name == "memory-en-de"
    assert new.pairs == 500
    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)
    (part,) = new.corpus.files.train.values()
    assert part.format == file_format
    assert part.both.path == f"inputs/memory.en-de.{file_format}"


def tmx(units):
    """Return a translation memory in TMX.

    Args:
        units: The translation units, each a list of language codes and sentences.
    """
    body = ""
    for unit in units:
        variants = ""
        for code, sentence in unit:
            variants += f'<tuv xml:lang="{code}"><seg>{escape(sentence)}</seg></tuv>'
        body += f"<tu>{variants}</tu>"
    return f'<tmx version="1.4"><header/><body>{body}</body></tmx>'


class TestInsert:
    """Insertion of an entry into params.yaml, whose other lines stay."""

    @pytest.mark.parametrize("recipe", ["own", "phrasebook", "back-translation-phrasebook"])
    def test_all_other_lines_stay_as_they_are(self, project, recipe):
        new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
        (project / "corpora").symlink_to(ROOT / "corpora")
        path = project / "params.yaml"
        content = (ROOT / "recipes" / f"{recipe}.yaml").read_bytes()
        path.write_bytes(content)

        are_replaced = insert_corpus(path, new, None, SYSTEMS_SECTION)

        assert are_replaced == (False, False)  # neither the example corpus nor its systems
        new_content = path.read_text(encoding="utf-8")
        assert new_content.replace(f"\n{new.entry}", "") == content.decode()
        # The entry follows the last corpus: it stands before the comment on the next section.
        lines_before = new_content.partition(f"\n{new.entry}")[0].splitlines()
        assert lines_before[-1].startswith("  ")
        assert list(load_settings(path).corpora)[-1] == new.name

    def test_line_ends_of_windows_stay(self, project):
        new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
        path = project / "params.yaml"
        path.write_bytes(PARAMS.replace("\n", "\r\n").encode())

        insert_corpus(path, new, None, SYSTEMS_SECTION)

        content = path.read_bytes().decode()
        assert content.count("\r\n") == content.count("\n")
        assert load_settings(path).corpora[new.name] == new.corpus

    @pytest.fixture
    def example(self, project):
        """Return the example in the recipe `own`, which here has the content of PARAMS."""
        recipe = project / "recipes" / "own.yaml"
        recipe.write_text(PARAMS)
        return Example.from_recipe(recipe)

    def test_the_example_of_a_recipe_is_its_corpus_and_its_systems(self, example):
        assert example.corpora == PARAMS[EXAMPLE_START:EXAMPLE_END].rstrip()
        assert example.systems == PARAMS[EXAMPLE_END:]

    def test_a_recipe_may_have_no_example_systems(self, project, example):
        recipe = project / "recipes" / "own.yaml"
        recipe.write_text(PARAMS[:EXAMPLE_END])

        assert Example.from_recipe(recipe) == Example(example.corpora, "")

    def test_an_unchanged_example_is_replaced(self, project, example):
        new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
        path = project / "params.yaml"
        path.write_text(PARAMS)

        corpus_and_systems_are_replaced = insert_corpus(path, new, example, SYSTEMS_SECTION)

        assert corpus_and_systems_are_replaced == (True, True)
        assert path.read_text() == PARAMS[:EXAMPLE_START] + new.entry + SYSTEMS_SECTION

    def test_an_example_corpus_that_the_user_changed_stays(self, project, example):
        new = analyze_pairs(project, FIVE_HUNDRED_PAIRS)
        path = project / "params.yaml"
        path.write_text(PARAMS.replace("valid: 0.05", "valid: 0.06"))

        corpus_and_systems_are_replaced = insert_corpus(path, new, example, SYSTEMS_SECTION)

        assert corpus_and_systems_are_replaced == (False, True)
        assert list(load_settings(path).corpora) == ["own", new.name]

    def test_example_systems_that_the_user_changed_stay(self, project, example):
        """Line ends of Windows alone are no change: the example corpus is replaced."""
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
    def test_params_into_which_nothing_can_be_inserted_stay(
        self, project, old_line, new_line, message
    ):
        new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, ("mine.en", "mine.de"))
        path = project / "params.yaml"
        content = PARAMS.replace(old_line, new_line)
        assert content != PARAMS
        path.write_text(content)

        with pytest.raises(UserError, match=message):
            insert_corpus(path, new, None, "")

        assert path.read_text() == content
        file_names = {entry.name for entry in project.iterdir()}
        assert file_names == {"params.yaml", "inputs", "recipes"}  # no temporary file


@pytest.mark.parametrize(("on_disk", "typed"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_file_is_found_in_both_forms_of_unicode(project, capsys, on_disk, typed):
    """Two names that look the same may be composed (NFC) on disk and decomposed (NFD) in a shell.

    Args:
        project: The folder of the project.
        capsys: What is printed.
        on_disk: The form of the files' names.
        typed: The form in which the user writes them.
    """
    names = [unicodedata.normalize(on_disk, f"Ä/Übung.{language}") for language in ("en", "de")]
    (project / "inputs" / names[0]).parent.mkdir()
    write_pairs(project, FIVE_HUNDRED_PAIRS, names)
    typed_paths = [unicodedata.normalize(typed, f"inputs/{name}") for name in names]

    run_command(f"bleuprint new-corpus {' '.join(typed_paths)}")

    files = load_settings().corpora["Ubung-en-de"].files.files_by_name().values()
    assert [file.path for file in files] == [f"inputs/{name}" for name in names]
    params = project / "params.yaml"
    params.write_text(unicodedata.normalize(typed, params.read_text("utf-8")), "utf-8")
    capsys.readouterr()
    run_command("bleuprint check")
    assert "no such file" not in capsys.readouterr().err
    run_command("bleuprint inspect Ubung-en-de")
    assert "clean: 500 pairs in, 500 out" in capsys.readouterr().out
    Repo.init(no_scm=True)
    assert len(md5_of_input_files(load_settings(), project)["Ubung-en-de"]) == 2


class TestTable:
    """A .tsv file: its header, its keys, and the columns that a user names."""

    def write(self, project, rows, name="app.tsv"):
        """Write rows to a table in inputs/."""
        text = "".join("\t".join(row) + "\n" for row in rows)
        (project / "inputs" / name).write_text(text, encoding="utf-8")

    def rows_with_keys(self):
        """Return rows of a key, an English and a German sentence."""
        rows = []
        for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
            rows.append((f"app.item_{number}", english, german))
        return rows

    @pytest.mark.parametrize(
        ("header", "columns"),
        [
            (("key", "english", "german"), ("english", "german")),
            (("id", "en", "de"), ("en", "de")),
            (("key", "EN-us", "de_DE"), ("EN-us", "de_DE")),
            (("key", "English", "Deutsch"), ("English", "Deutsch")),
            (("", "text_eng", "text_ger"), ("text_eng", "text_ger")),
        ],
    )
    def test_a_header_names_columns_and_languages(self, project, capsys, header, columns):
        self.write(project, [header, *self.rows_with_keys()])

        run_command("bleuprint new-corpus inputs/app.tsv")

        source, target = columns
        assert capsys.readouterr().out.startswith(
            f"inputs/app.tsv: source is column 2, {source!r}, target is column 3, {target!r}\n"
            "500 pairs; "
        )
        corpus = load_settings().corpora["app-en-de"]
        assert corpus.languages == ("en", "de")
        (part,) = corpus.files.train.values()
        assert part.columns == columns
        assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)

    def test_languages_that_the_user_names_choose_among_the_columns_of_a_header(self, project):
        """`ger` in the command is the column `de`."""
        rows = [("key", "de", "note", "en")]
        for key, english, german in self.rows_with_keys():
            rows.append((key, german, "menu", english))
        self.write(project, rows)

        new = NewCorpus.from_files([Path("inputs/app.tsv")], ["en", "ger"])

        assert new.text.columns == ("en", "de")
        assert new.languages == ("en", "de")
        assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)

    def test_without_a_header_the_column_of_keys_is_ignored(self, project, capsys):
        self.write(project, self.rows_with_keys())

        run_command("bleuprint new-corpus inputs/app.tsv --languages en de")

        assert capsys.readouterr().out.startswith(
            "inputs/app.tsv: source is column 2, target is column 3\n500 pairs;"
        )
        (part,) = load_settings().corpora["app-en-de"].files.train.values()
        assert part.columns == (2, 3)

    def test_a_first_pair_with_words_that_are_language_codes_is_not_a_header(self, project):
        """The word "mal" is also the code of Malayalam, and "to" is the code of Tongan."""
        first_pair = ("Ein Hund lief zwei mal nach Hause.", "A dog ran to its home twice.")
        self.write(project, [first_pair, *swap_sides(FIVE_HUNDRED_PAIRS)])

        with pytest.raises(UserError, match=r"Name both, such as: --languages"):
            run_command("bleuprint new-corpus inputs/app.tsv")

    @pytest.mark.parametrize(
        ("columns", "expected_columns"),
        [
            pytest.param(["3", "2"], (3, 2), id="numbers"),
            pytest.param(["text2", "note"], ("text2", "note"), id="names"),
        ],
    )
    def test_the_user_names_columns_by_number_or_name(self, project, columns, expected_columns):
        """Column 3 (text2) is German; column 2 (text) and column 4 (note) are English."""
        rows = [("key", "text", "text2", "note")]
        for key, english, german in self.rows_with_keys():
            rows.append((key, english, german, english))
        self.write(project, rows)

        new = NewCorpus.from_files([Path("inputs/app.tsv")], ["de", "en"], columns)

        assert new.text.columns == expected_columns
        assert set(swap_sides(FIVE_HUNDRED_PAIRS)) <= set(new.sample)

    def test_a_header_whose_columns_are_named_is_no_pair(self, project):
        rows = [("key", "text", "text2", "note")]
        for key, english, german in self.rows_with_keys():
            rows.append((key, english, german, english))
        self.write(project, rows)

        new = NewCorpus.from_files([Path("inputs/app.tsv")], ["de", "en"], ["text2", "note"])

        assert len(new.sample) == 500

    def test_columns_with_the_same_name_are_named_by_their_numbers(self, project):
        rows = [("key", "en", "de", "en")]
        for key, english, german in self.rows_with_keys():
            rows.append((key, "x", german, english))
        self.write(project, rows)

        new = NewCorpus.from_files([Path("inputs/app.tsv")], None, ["4", "3"])

        assert new.text.columns == (4, 3)
        assert new.languages == ("en", "de")
        assert set(FIVE_HUNDRED_PAIRS) <= set(new.sample)

    @pytest.mark.parametrize("is_german_first", [False, True])
    @pytest.mark.parametrize(
        ("name", "languages"),
        [
            pytest.param("app.tsv", ["en", "de"], id="languages in the command"),
            pytest.param("app.en-de.tsv", None, id="languages in the name"),
        ],
    )
    def test_the_source_is_the_column_in_the_first_language(
        self, project, is_german_first, name, languages
    ):
        """The table has two columns and no header: their text decides which one is English."""
        rows = swap_sides(FIVE_HUNDRED_PAIRS) if is_german_first else FIVE_HUNDRED_PAIRS
        self.write(project, rows, name)

        new = NewCorpus.from_files([Path("inputs", name)], languages)

        assert new.languages == ("en", "de")
        assert new.text.columns == ((2, 1) if is_german_first else (1, 2))
        assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)

    def test_columns_in_the_other_order_are_refused_with_a_command_that_works(self, project):
        self.write(project, [("id", "Source text", "Target text"), *self.rows_with_keys()])
        files = [Path("inputs/app.tsv")]

        with pytest.raises(UserError) as error:
            NewCorpus.from_files(files, ["de", "en"], ["Source text", "Target text"])

        message = str(error.value)
        assert message.startswith("inputs/app.tsv: 100% of the pairs are en and de, not")
        assert "rename" not in message
        assert message.endswith(": --columns 'Target text' 'Source text' --languages de en")
        new = NewCorpus.from_files(files, ["de", "en"], ["Target text", "Source text"])
        assert sorted(new.sample) == sorted(swap_sides(FIVE_HUNDRED_PAIRS))

    def test_a_header_may_say_source_and_target(self, project):
        self.write(project, [("id", "Source", "Target"), *self.rows_with_keys()])

        new = NewCorpus.from_files([Path("inputs/app.tsv")], ["en", "de"])

        assert new.text.columns == ("Source", "Target")
        assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--columns", "1", "3"], r"app\.tsv: column 1 holds keys such as 'app\.item_0', not"),
            (["--columns", "3", "5"], r"app\.tsv:1: no column '5'\. Columns: 1 \('app\.item_0'\)"),
            (["--columns", "3", "x"], r"app\.tsv:1: no column 'x'\. Columns: 1 \("),
            (["--columns", "3", "3"], r"app\.tsv: column 3 is given twice"),
            (["--columns", "3", "4"], r"app\.tsv: column 4 has hardly any words"),
        ],
    )
    def test_a_column_that_cannot_be_a_side_is_refused(self, project, arguments, message):
        self.write(project, [(*row, "0.5") for row in self.rows_with_keys()])
        line = f"bleuprint new-corpus inputs/app.tsv --languages en de {' '.join(arguments)}"
        with pytest.raises(UserError, match=message):
            run_command(line)

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            pytest.param(
                [("a.b", "One.")] * 200,
                r"app\.tsv: two columns of sentences are needed, but column",
                id="keys and one language",
            ),
            pytest.param(
                [("only one",)] * 200,
                r"app\.tsv:1: the line has no tab",
                id="one column",
            ),
            pytest.param(
                [("en", "de", "fr"), *((a, b, a) for a, b in FIVE_HUNDRED_PAIRS)],
                r"app\.tsv:1: columns are named after en, de, fr\. Name two .* --languages en de",
                id="three languages",
            ),
            pytest.param(
                [("en", "en-GB", "de"), *((a, a, b) for a, b in FIVE_HUNDRED_PAIRS)],
                r"app\.tsv:1: several columns are in one language\. Name two: --columns",
                id="two columns of English",
            ),
            pytest.param(
                [(a, a, b) for a, b in FIVE_HUNDRED_PAIRS],
                r"app\.tsv: 3 columns of text\. Name two: --columns SOURCE TARGET\. Columns: 1",
                id="three columns without a header",
            ),
        ],
    )
    def test_a_table_without_two_clear_columns_is_refused(self, project, rows, message):
        self.write(project, rows)

        with pytest.raises(UserError, match=message):
            run_command("bleuprint new-corpus inputs/app.tsv")

    def test_the_example_names_the_language_in_the_name_of_the_file(self, project):
        self.write(project, FIVE_HUNDRED_PAIRS, "app.nl.tsv")
        with pytest.raises(UserError, match=r"Name both, such as: --languages nl en$"):
            run_command("bleuprint new-corpus inputs/app.nl.tsv")

    def test_the_option_columns_is_refused_for_two_files(self, project):
        analyze_pairs(project, FIVE_HUNDRED_PAIRS)
        with pytest.raises(UserError, match=r"mine\.en: --columns is for a \.tsv file"):
            run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de --columns 1 2")


class TestMemory:
    """A .tmx file: its language codes, and variants of a language."""

    def write(self, project, units, name="memory.tmx"):
        """Write translation units to a file in inputs/."""
        (project / "inputs" / name).write_text(tmx(units), encoding="utf-8")

    def test_codes_of_all_kinds_name_the_same_language_and_are_counted(self, project, capsys):
        code_pairs = [("en", "de"), ("eng", "ger"), ("EN_us", "deu"), ("en-US", "de-AT")]
        units = []
        for number, (english, german) in enumerate(FIVE_HUNDRED_PAIRS):
            english_code, german_code = code_pairs[number % 4]
            units.append([(english_code, english), (german_code, german)])
        self.write(project, units)

        run_command("bleuprint new-corpus inputs/memory.tmx")

        output = capsys.readouterr()
        assert output.out.startswith(  # 125 units are a quarter of 500
            "inputs/memory.tmx: units by language code: en (125), de (125), eng (125), ger (125), "
            "EN_us (125), deu (125), en-US (125), de-AT (125)\n500 pairs; "
        )
        # There is only one variant of each language: US English (two spellings), Austrian German.
        assert "mixes" not in output.err
        corpus = load_settings().corpora["memory-en-de"]
        (part,) = corpus.files.train.values()
        assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)

    @pytest.mark.parametrize(
        ("codes_in_file", "other_codes"),
        [
            (("iw", "no-NO"), ("he", "nb")),
            (("heb", "nob"), ("he", "no")),
            (("he-IL", "nb_NO"), ("iw", "nor")),
            (("in", "fil"), ("id", "tl")),
            (("cmn-Hans", "per"), ("zh", "fas")),
        ],
    )
    def test_old_and_three_letter_codes_name_the_same_language(
        self, project, codes_in_file, other_codes
    ):
        self.write(
            project, [[*zip(codes_in_file, pair, strict=True)] for pair in FIVE_HUNDRED_PAIRS]
        )
        path = Path("inputs/memory.tmx")
        for languages in (None, codes_in_file, other_codes):
            new = NewCorpus.from_files([path], languages)
            assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)

    def test_an_empty_variant_does_not_hide_a_full_one(self, project):
        units = [
            [("en-US", ""), ("en-GB", a), ("de", b), ("de-CH", "")] for a, b in FIVE_HUNDRED_PAIRS
        ]
        self.write(project, units)
        assert sorted(NewCorpus.from_files([Path("inputs/memory.tmx")]).sample) == sorted(
            FIVE_HUNDRED_PAIRS
        )

    @pytest.mark.parametrize("languages", [["de", "en"], ["en", "de"]])
    def test_codes_that_are_exchanged_are_refused(self, project, languages):
        """The English sentences have the code de, the German sentences the code en."""
        units = [[("de", english), ("en", german)] for english, german in FIVE_HUNDRED_PAIRS]
        self.write(project, units)

        with pytest.raises(UserError, match="exchange the two language codes") as error:
            NewCorpus.from_files([Path("inputs/memory.tmx")], languages)

        assert "rename" not in str(error.value)

    @pytest.fixture
    def memory_with_variants(self, project):
        """Write 500 units in US and British English and German, and 7 without British English.

        US sentences begin with x.
        """
        units = []
        for english, german in FIVE_HUNDRED_PAIRS:
            units.append([("en-US", f"x {english}"), ("en-GB", english), ("de", german)])
        units += [[("en-US", "x"), ("de", "y")]] * 7
        self.write(project, units)

    @pytest.mark.usefixtures("memory_with_variants")
    def test_the_user_chooses_a_variant_of_a_language(self, capsys):
        run_command("bleuprint new-corpus inputs/memory.tmx --languages en-gb de")

        output = capsys.readouterr()
        assert "inputs/memory.tmx: 7 of 507 units lack one of the languages\n" in output.out
        assert "mixes" not in output.err
        corpus = load_settings().corpora["memory-en-de"]
        (part,) = corpus.files.train.values()
        assert part.languages == ("en-gb", "de")
        assert sorted(read_text_pairs(part, corpus.languages)) == sorted(FIVE_HUNDRED_PAIRS)

    @pytest.mark.usefixtures("memory_with_variants")
    def test_a_language_that_mixes_variants_is_noted(self, capsys):
        NewCorpus.from_files([Path("inputs/memory.tmx")], ["en", "de"])

        assert capsys.readouterr().err == (
            "bleuprint: note: inputs/memory.tmx: en mixes en-US (507), en-GB (500). If a unit has "
            "several variants of a language, the first is taken. One variant alone leaves 507 "
            "pairs: --languages en-US de\n"
        )

    def test_the_pair_of_variants_with_most_units_is_advised(self, project, capsys):
        """US English has more units (130 + 90) than British (160), but with two kinds of German."""
        code_pairs = [("en-US", "de-AT")] * 130 + [("en_us", "de_DE")] * 90
        code_pairs += [("en-GB", "de-DE")] * 160 + [("eng", "ger")] * 120
        units = []
        for codes, pair in zip(code_pairs, FIVE_HUNDRED_PAIRS, strict=True):
            units.append([*zip(codes, pair, strict=True)])
        self.write(project, units)

        NewCorpus.from_files([Path("inputs/memory.tmx")])

        assert capsys.readouterr().err == (
            "bleuprint: note: inputs/memory.tmx: en mixes en-US (220), en-GB (160), en (120); "
            "de mixes de_DE (250), de-AT (130), de (120). One variant alone leaves 160 pairs: "
            "--languages en-GB de_DE\n"
        )

    def test_a_language_without_a_country_is_counted_beside_its_variants(self, project, capsys):
        """Each unit has English and British English; `ger` and `de` are the same German."""
        units = []
        for english, german in FIVE_HUNDRED_PAIRS:
            units.append([("en", english), ("en-GB", english), ("ger", german), ("de", german)])
        self.write(project, units)

        NewCorpus.from_files([Path("inputs/memory.tmx")])

        notes = capsys.readouterr().err
        assert "en mixes en (500), en-GB (500). If a unit has several" in notes
        assert "leaves 500 pairs: --languages en-GB de\n" in notes
        assert "de mixes" not in notes

    def test_for_three_languages_the_message_proposes_the_two_with_most_units(self, project):
        """Norwegian and Nynorsk have 500 units each, French has 9."""
        units = []
        for english, german in FIVE_HUNDRED_PAIRS:
            units.append([("en", english), ("no", german), ("nn", german)])
        for english, german in FIVE_HUNDRED_PAIRS[:9]:
            units.append([("en", english), ("fr", german)])
        self.write(project, units)

        with pytest.raises(UserError, match=r"name two languages, such as: --languages en no\. "):
            NewCorpus.from_files([Path("inputs/memory.tmx")])

    def test_a_memory_of_two_variants_of_one_language_is_refused(self, project):
        units = [[("en-US", english), ("en-GB", english)] for english in ENGLISH_SENTENCES]
        self.write(project, units)

        with pytest.raises(UserError, match=r"all text is in en, .* needs two languages\. The"):
            NewCorpus.from_files([Path("inputs/memory.tmx")])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ("", r"memory\.tmx: name two languages, .* in this file are en \(500\), de \(500\), f"),
            (
                "--languages en nl",
                r"memory\.tmx: no unit is in nl\. .* are en \(500\), de \(500\), fr-FR \(500\)",
            ),
            ("--languages en-GB de", r"no unit is in en-GB\. The language codes in this file are"),
            ("--languages english de", r"--languages english: not a language code .*; english is"),
            ("--languages en eng", r"source and target are both en\. .*: --languages en qaa"),
        ],
    )
    def test_languages_that_the_file_does_not_contain_are_refused(
        self, project, arguments, message
    ):
        self.write(project, [[("en", a), ("de", b), ("fr-FR", a)] for a, b in FIVE_HUNDRED_PAIRS])
        with pytest.raises(UserError, match=message):
            run_command(f"bleuprint new-corpus inputs/memory.tmx {arguments}")
