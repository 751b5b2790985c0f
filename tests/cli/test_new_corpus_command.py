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
from bleuprint.pipeline.resolve import input_files
from bleuprint.runtime.errors import UserError
from bleuprint.text.language_likelihoods import LanguageLikelihoods
from bleuprint.training import fitted_systems
from corpora import TORTURE
from params import PARAMS
from root import ROOT

OWN = (ROOT / "recipes" / "own.yaml").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = [list(phrasebook.sentences("valid", language)) for language in ("en", "de")]
GOOD = [*zip(*TEXTS, strict=True)]
START, END = PARAMS.index("  own:\n"), PARAMS.index("systems:\n")
TRAIN = "{max_tokens: 9, tokens_per_update: 9, max_updates: 5}"
ROWS = f"systems:\n  other:\n    train: {TRAIN}\n    average: {{last: 1}}\n"


@pytest.fixture(autouse=True, scope="module")
def languages_identified_once():
    """Identify the languages of equal sentences once, since most tests have the same text."""
    identify = LanguageLikelihoods.likelihoods

    @functools.cache
    def identified(model, sentences):
        return identify(model, sentences)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            LanguageLikelihoods, "likelihoods", lambda model, each: identified(model, tuple(each))
        )
        yield


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fitted_systems, "seconds_per_pair", lambda *_: 0.01)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "recipes").mkdir()
    for name in ("recipes/own.yaml", "params.yaml"):
        (tmp_path / name).write_text(OWN, encoding="utf-8")
    return tmp_path


# What new-corpus ends with: of the 500 pairs a tenth, 50, is the test set.
SAID = [
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


def run(line):
    _, commands = command_parser()
    _, name, *arguments = shlex.split(line)
    given = commands.choices[name].parse_args(arguments)
    given.command(given)


def new_corpus(project, pairs, names=("mine.en", "mine.de"), languages=None):
    files = [project / "inputs" / name for name in names]
    for side, path in enumerate(files):
        path.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
    return NewCorpus.from_files([path.relative_to(project) for path in files], languages)


def test_what_the_readme_says(project, capsys):
    (line,) = re.findall(r"(?m)^\$ (bleuprint new-corpus .*)", README)
    new_corpus(project, [pair[::-1] for pair in GOOD], ("mine.de", "mine.en"))
    run(line)
    output = capsys.readouterr()
    start = "500 pairs; params.yaml has a new entry in place of the example:\n\n  mine-de-en:\n"
    assert output.out.startswith(start)
    assert output.err == (
        "bleuprint: note: the test set has only 50 pairs, and systems are compared from 100 on. "
        "Add text, or name a test set of your own in files.tests\n"
    )
    entry = output.out.partition("\n\n")[2].partition("\n\n")[0]
    params = (project / "params.yaml").read_text(encoding="utf-8")
    assert entry in params and "  mine-de-en:" not in params.replace(entry, "")
    last = output.out.splitlines()[-len(SAID) :]
    for said, words in zip(last, SAID, strict=True):
        assert re.search(words, said), said
    run("bleuprint check")
    output = capsys.readouterr()
    assert output.out == "own: params.yaml is valid\n"
    assert "no such file" not in output.err  # the note on an entry without its files
    assert list(load_settings().trained_systems_on("mine-de-en")) == ["small", "medium"]
    with pytest.raises(UserError, match="corpus mine-de-en is already defined: remove or"):
        run(line)
    new_corpus(project, GOOD, ("b.en", "b.de"))  # another one
    run("bleuprint new-corpus inputs/b.en inputs/b.de")
    assert "params.yaml keeps its systems, whose sizes do not fit" in capsys.readouterr().err


def test_text_that_the_tokenizer_changes_is_noted(project, capsys):
    spaced = ("' {} '", "'{}'")  # Moses prints both without the spaces
    pairs = [[form.format(word) for word in pair] for pair in GOOD for form in spaced]
    new_corpus(project, pairs)
    run("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    said = capsys.readouterr().err
    assert re.search(r"note: BLEU ceiling of the test set is \d\d\.\d \(tokenize -\d", said)
    assert "with vocabulary.sentencepiece restores all text" in said


def test_odd_characters_and_names(project):
    (project / "params.yaml").write_text(PARAMS)
    pairs = [
        [f"{a}{odd}", f"{b}{odd} x"]
        for (a, b), odd in zip(GOOD[: 10 * len(TORTURE)], TORTURE * 10, strict=True)
    ]
    names = ("my \"text\" ü:#.en", "my \"text\" ü:#.de")  # fmt: skip
    new = new_corpus(project, pairs, names)
    assert new.pairs == len(pairs)
    insert_corpus(project / "params.yaml", new, None, "")
    files = load_settings().corpora["my-text-u-en-de"].files.files_by_name()
    assert [file.path for file in files.values()] == [f"inputs/{name}" for name in names]


def test_the_text_of_an_entry_is_named_after_its_files(project):
    """What the names of both files have in common, without the languages of the corpus's name."""
    new = new_corpus(project, GOOD, ("talks_2-en.txt", "talks_2-de.txt"))
    assert new.name == "talks-2-en-de"
    assert [*new.corpus.files.train] == ["talks-2"]
    ((name, license_and_citation),) = new.corpus.license_and_citation.items()
    assert name == "talks-2"
    assert license_and_citation.bibtex == "@misc{talks-2, title = {{talks-2}}}"


def test_checks_that_cannot_judge_the_text_are_left_out(project):
    few, many, unknown = (
        {rule.name() for rule in new_corpus(project, *given).corpus.filter}
        for given in ((GOOD,), (GOOD * 2,), (GOOD, ("a.en", "a.de"), ("en", "chr")))
    )
    assert many - few == {"word_alignment"} and few - unknown == {"language_id"}


@pytest.mark.parametrize(
    ("names", "languages", "name"),
    [
        (("Übung.en", "Übung.de"), None, "Ubung-en-de"),
        (("Cafe\u0301_2-en.txt", "Cafe\u0301_2-de.txt"), None, "Cafe-2-en-de"),
        (("文.en", "文.de"), None, "mine-en-de"),
        (("2020.en", "2020.de"), None, "2020-en-de"),
        (("null.en", "null.de"), None, "null-en-de"),
        (("a.de-en.en", "a.de-en.de"), None, "a-en-de"),
        (("one.txt", "two.txt"), ("en", "chr"), "mine-en-chr"),
    ],
)
def test_languages_and_name(project, names, languages, name):
    new = new_corpus(project, GOOD, names, languages)
    assert new.name == name and [*new.corpus.languages] == [*new.languages]


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
    new_corpus(project, GOOD)
    if content is not None:
        (project / "inputs" / name.split()[0]).write_bytes(content)
    with pytest.raises(UserError, match=message):
        run(f"bleuprint new-corpus inputs/mine.en inputs/{name}")


def test_a_line_too_many_is_found(project):
    new_corpus(project, GOOD)
    path = project / "inputs" / "mine.de"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:300], "\n", *lines[300:]]), encoding="utf-8")
    with pytest.raises(
        UserError, match=r"de has 501: not parallel; .* at about line (\d+)"
    ) as error:
        run("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    assert abs(int(str(error.value).rpartition(" ")[2]) - 301) <= 3


def test_pairs_that_cannot_be_used_are_refused(project):
    for pairs, message in (
        (GOOD[:99], "99 pairs are too few to train, validate and test on: at least 100"),
        (
            [pair[::-1] for pair in GOOD],
            r"100% of the pairs are de and en, not en and de\. .*: --languages de en$",
        ),
        ([("", "")] * 100, "no pair has text on both sides"),
        ([(source, source) for source, _ in GOOD], "mine.de: source and target are the same text"),
    ):
        with pytest.raises(UserError, match=message):
            new_corpus(project, pairs)


def test_files_in_the_other_order_of_the_languages_are_refused(project):
    with pytest.raises(UserError) as error:
        new_corpus(project, GOOD, ("a.txt", "b.txt"), ("de", "en"))
    assert str(error.value) == (
        "inputs/a.txt and inputs/b.txt: 100% of the pairs are en and de, not de and en. "
        "Name the two files in the other order, or use: --languages en de"
    )


def test_pairs_of_other_languages_are_noted(project, capsys):
    new = new_corpus(project, GOOD, ("mine.fr", "mine.de"))
    assert re.search("[01]% of the pairs look like fr and de. .*--languages", new.language_note)
    new = new_corpus(project, GOOD, languages=["fr", "de"])
    assert re.search("[01]% of the pairs look like fr and de. Look at the", new.language_note)
    assert "--languages" not in new.language_note
    new_corpus(project, GOOD, languages=["xx", "de"])
    assert "xx: not a language that the filter language_id knows" in capsys.readouterr().err
    new_corpus(project, [*zip(TEXTS[0], [*TEXTS[1][1:], ""], strict=True)])
    found = re.search(
        r"do not fit line by line: lines (\d+) to (\S+) fit the target 1 line earlier",
        capsys.readouterr().err,
    )
    assert int(found[1]) <= 10
    assert int(found[2].replace(",", "")) >= len(TEXTS[0]) - 10
    new_corpus(project, GOOD)
    new_corpus(project, [pair for good in GOOD for pair in (good, ("", ""))])  # double-spaced
    assert not capsys.readouterr().err


def test_what_remains_after_the_rules_is_counted(project, capsys):
    """By hand: of 800 pairs dedup drops 100, then identical 200 of 700; a tenth of 500 is 50."""
    identical = [(f"{source} {n}", f"{source} {n}") for n, (source, _) in enumerate(GOOD[:200])]
    new_corpus(project, [*GOOD, *identical, *GOOD[:100]])
    run("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    output = capsys.readouterr()
    counted = "500 of 800 pairs remain after the rules: train 400, valid 50, test 50"
    assert counted in output.out.splitlines()
    assert "BLEU will be known" not in output.out  # the note on few test pairs says enough
    assert "400 training pairs are few" in output.out
    notes = output.err.splitlines()
    assert len(notes) == 3
    assert "rule duplicate_pair of dedup drops 100 of 800 pairs (12%)" in notes[0]
    assert "rule identical of filter drops 200 of 700 pairs (29%)" in notes[1]
    assert notes[1].endswith("To see some: bleuprint inspect mine-en-de")
    run("bleuprint inspect mine-en-de --samples 1")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "pairs that remain: train 400, valid 50, test.held-out 50"


def test_the_precision_of_bleu_is_stated_if_systems_are_compared(project, capsys):
    """By hand: 1.6 BLEU on 1,000 pairs are 1.6 * sqrt(10) = 5.06 on 100 pairs."""
    pairs = [(f"{source} {n}", f"{target} {n}") for n in (1, 2) for source, target in GOOD]
    new_corpus(project, pairs)
    run("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    output = capsys.readouterr()
    assert re.search(r"BLEU will be known to about ±5\.\d, by a test set of \d+ pairs", output.out)
    assert "the test set has only" not in output.err


def test_lines_too_short_for_bleu_are_named(project, capsys):
    """Of two words, no line has a 4-gram: sacreBLEU scores the references themselves 0."""
    pairs = [(f"{a.split()[1]} x{n}a", f"{b.split()[1]} x{n}a") for n, (a, b) in enumerate(GOOD)]
    new_corpus(project, pairs, languages=("en", "chr"), names=("mine.en", "mine.de"))
    run("bleuprint new-corpus inputs/mine.en inputs/mine.de --languages en chr")
    said = capsys.readouterr().err
    assert "note: BLEU ceiling of the test set is 0.0 (line length -100.0): BLEU needs" in said
    assert "compare systems by chrF2" in said


def names_of_places(count):
    """English and Croatian names, which the filter language_id takes for other languages."""
    return [(f"Nikola Tesla {n} Belgrade", f"Nikola Tesla {n} Beograd") for n in range(count)]


@pytest.mark.parametrize("others", [0, 30])
def test_language_id_is_omitted_if_it_alone_leaves_too_few_pairs(project, capsys, others):
    """Of 300 pairs of names it keeps none; with 30 sentences, too few for a useful test set."""
    sentences = [
        (f"{number} dogs are running through the green forest.", f"{number} pasa trče kroz šumu.")
        for number in range(100, 100 + others)
    ]
    new_corpus(project, [*names_of_places(300), *sentences], ("nm.en", "nm.hr"), ("en", "hr"))
    capsys.readouterr()
    run("bleuprint new-corpus inputs/nm.en inputs/nm.hr")
    output = capsys.readouterr()
    notes = [line for line in output.err.splitlines() if "language" in line]
    (note,) = notes
    assert re.search(rf"language_id would drop 3\d\d of {300 + others} pairs, so the entry", note)
    assert note.endswith("If it is not, remove the entry and add: --languages SOURCE TARGET")
    rules = [rule.name() for rule in load_settings().corpora["nm-en-hr"].filter]
    assert rules == ["identical", "length", "length_ratio"]
    assert f"{300 + others} of {300 + others} pairs remain after the rules" in output.out


def test_languages_that_are_named_need_not_be_named_again(project, capsys):
    new_corpus(project, names_of_places(300), ("a.txt", "b.txt"), ("en", "hr"))
    run("bleuprint new-corpus inputs/a.txt inputs/b.txt --languages en hr")
    said = capsys.readouterr().err
    assert "language_id would drop 300 of 300 pairs, so the entry omits it" in said
    assert "--languages" not in said


def test_language_id_stays_if_it_leaves_enough_pairs(project, capsys):
    """Of 1,100 pairs, more than half are names, but at least 500 pairs are sentences."""
    new_corpus(project, [*names_of_places(600), *GOOD], ("mine.en", "mine.de"))
    run("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    rules = {rule.name() for rule in load_settings().corpora["mine-en-de"].filter}
    assert "language_id" in rules
    assert "would drop" not in capsys.readouterr().err


def test_a_text_of_which_the_rules_leave_nothing_is_refused(project, capsys):
    """Each pair repeats the first one, so that dedup leaves one pair even without language_id."""
    new_corpus(project, [GOOD[0]] * 500, ("mine.fr", "mine.ru"))
    before = (project / "params.yaml").read_bytes()
    with pytest.raises(
        UserError, match=r"leave too few of the 500 pairs .* dropped by language_id 1"
    ):
        run("bleuprint new-corpus inputs/mine.fr inputs/mine.ru")
    assert (project / "params.yaml").read_bytes() == before
    assert "0% of the pairs look like fr and ru" in capsys.readouterr().err


def write_table(path):
    """Write the 500 pairs of GOOD as a table: number, English, German, score from 0 to 1.

    One score contains a carriage return, which does not end a row.
    """
    rows = []
    for number, (english, german) in enumerate(GOOD, 1):
        score = "0.5\r0" if number == 250 else f"{number / 500:.2f}"
        rows.append(f"{number}\t{english}\t{german}\t{score}\n")
    content = "".join(rows).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["memory.en-de.tsv", "packed.en-de.tsv.gz"])
def test_the_columns_of_a_table_are_those_with_words(project, name):
    write_table(project / "inputs" / name)
    new = NewCorpus.from_files([Path("inputs", name)], None)
    (table,) = new.corpus.files.train.values()
    # Columns count from 1: 2 is English, 3 is German.
    assert table.columns == (2, 3)


@pytest.mark.parametrize("name", ["memory.en-de.tsv", "packed.en-de.tsv.gz"])
def test_the_pairs_of_a_table_are_its_rows(project, name):
    """The order does not matter: NewCorpus draws its sample."""
    write_table(project / "inputs" / name)
    new = NewCorpus.from_files([Path("inputs", name)], None)
    assert sorted(new.sample) == sorted(GOOD)


@pytest.mark.parametrize("pairs", [100, 4_999, 150_000, 3_000_000, 14_000_000, 40_000_000])
def test_no_more_is_held_out_than_is_needed(pairs):
    new = NewCorpus([Path("a.de"), Path("a.en")], ("de", "en"), pairs, GOOD)
    shares = YAML(typ="safe").load(new.entry)["a-de-en"]["split"]
    for share, most in ((shares["valid"], 1000), (shares["test"], 2000)):
        held_out = round(share * pairs)
        assert most - 2 <= held_out <= most + 2 or share == (0.1 if pairs <= 5000 else 0.05)
        assert held_out <= most + 2


@pytest.mark.parametrize("kind", ["tsv", "tmx"])
def test_one_file_with_both_sides(project, kind):
    if kind == "tsv":
        text = "".join(f"{a}\t{b}\tnote\n" for a, b in GOOD)
    else:
        unit = (
            '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'
        )
        units = "".join(unit.format(a, b) for a, b in GOOD)
        text = f'<tmx version="1.4"><header/><body>{units}</body></tmx>'
    path = project / "inputs" / f"memory.en-de.{kind}"
    path.write_text(text, encoding="utf-8")
    new = NewCorpus.from_files([path.relative_to(project)], None)
    assert (new.name, new.pairs) == ("memory-en-de", 500)
    assert sorted(new.sample) == sorted(GOOD)
    (part,) = new.corpus.files.train.values()
    assert (part.format, part.both.path) == (kind, f"inputs/memory.en-de.{kind}")


class TestInsert:
    @pytest.fixture
    def new(self, project):
        return new_corpus(project, GOOD)

    @pytest.mark.parametrize("recipe", ["own", "phrasebook", "back-translation-phrasebook"])
    def test_all_other_lines_stay_as_they_are(self, project, new, recipe):
        path = project / "params.yaml"
        (project / "corpora").symlink_to(ROOT / "corpora")
        path.write_bytes(before := (ROOT / "recipes" / f"{recipe}.yaml").read_bytes())
        assert insert_corpus(path, new, None, ROWS) == (False, False)
        after = path.read_text(encoding="utf-8")
        assert after.replace(f"\n{new.entry}", "") == before.decode()
        # before the comment on what follows
        assert after.partition(f"\n{new.entry}")[0].splitlines()[-1].startswith("  ")
        assert list(load_settings(path).corpora)[-1] == new.name

    def test_line_ends_stay(self, project, new):
        path = project / "params.yaml"
        path.write_bytes(PARAMS.replace("\n", "\r\n").encode())
        insert_corpus(path, new, None, ROWS)
        after = path.read_bytes().decode()
        assert after.count("\r\n") == after.count("\n")
        assert load_settings(path).corpora == {**load_settings(path).corpora, new.name: new.corpus}

    def test_an_example_is_replaced_if_nobody_changed_it(self, project, new):
        path, recipe = project / "params.yaml", project / "recipes" / "own.yaml"
        recipe.write_text(PARAMS)
        example = Example.from_recipe(recipe)
        assert (example.corpora, example.systems) == (PARAMS[START:END].rstrip(), PARAMS[END:])
        path.write_text(PARAMS)
        assert insert_corpus(path, new, example, ROWS) == (True, True)
        assert path.read_text() == PARAMS[:START] + new.entry + ROWS
        path.write_text(PARAMS.replace("valid: 0.05", "valid: 0.06"))
        assert insert_corpus(path, new, example, ROWS) == (False, True)
        assert list(load_settings(path).corpora) == ["own", new.name]
        path.write_bytes(PARAMS.replace("  base:", "  mine:").replace("\n", "\r\n").encode())
        assert insert_corpus(path, new, example, ROWS) == (True, False)
        assert load_settings(path).trained_systems == ["mine"]
        recipe.write_text(PARAMS[:END])
        assert Example.from_recipe(recipe) == Example(example.corpora, "")

    @pytest.mark.parametrize(
        ("old", "new_text", "message"),
        [
            ("  own:\n", "  mine-en-de:\n", r"params\.yaml:4: corpus mine-en-de is already"),
            ("    tie_embeddings: all", "    x: 1", r"params\.yaml:\d+: .*x"),
            ("systems:\n  base:\n", "systems:\n  base:\n    corpora: {own: {}}\n", "no system is"),
        ],
    )
    def test_what_cannot_be_inserted_is_refused(self, project, new, old, new_text, message):
        path = project / "params.yaml"
        path.write_text(text := PARAMS.replace(old, new_text))
        assert text != PARAMS
        with pytest.raises(UserError, match=message):
            insert_corpus(path, new, None, "")
        assert path.read_text() == text
        assert {each.name for each in project.iterdir()} == {"params.yaml", "inputs", "recipes"}


@pytest.mark.parametrize(("on_disk", "typed"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_file_is_found_in_both_forms_of_unicode(project, capsys, on_disk, typed):
    names = [unicodedata.normalize(on_disk, f"Ä/Übung.{language}") for language in ("en", "de")]
    (project / "inputs" / names[0]).parent.mkdir()
    new_corpus(project, GOOD, names)
    typed_names = [unicodedata.normalize(typed, f"inputs/{name}") for name in names]
    run(f"bleuprint new-corpus {' '.join(typed_names)}")
    paths = [
        file.path for file in load_settings().corpora["Ubung-en-de"].files.files_by_name().values()
    ]
    assert paths == [f"inputs/{name}" for name in names]
    params = project / "params.yaml"
    params.write_text(unicodedata.normalize(typed, params.read_text("utf-8")), "utf-8")
    capsys.readouterr()
    run("bleuprint check")
    assert "no such file" not in capsys.readouterr().err
    run("bleuprint inspect Ubung-en-de")
    assert "clean: 500 pairs in, 500 out" in capsys.readouterr().out
    Repo.init(no_scm=True)
    assert len(input_files(load_settings(), project)["Ubung-en-de"]) == 2


class TestTable:
    """A .tsv file: its header, its keys, and the columns that a user names."""

    def write(self, project, rows, name="app.tsv"):
        text = "".join("\t".join(row) + "\n" for row in rows)
        (project / "inputs" / name).write_text(text, encoding="utf-8")

    def keyed(self):
        return [(f"app.item_{n}", a, b) for n, (a, b) in enumerate(GOOD)]

    @pytest.mark.parametrize(
        ("header", "wanted", "languages"),
        [
            (("key", "english", "german"), ("english", "german"), ("en", "de")),
            (("id", "en", "de"), ("en", "de"), ("en", "de")),
            (("key", "EN-us", "de_DE"), ("EN-us", "de_DE"), ("en", "de")),
            (("key", "English", "Deutsch"), ("English", "Deutsch"), ("en", "de")),
            (("", "text_eng", "text_ger"), ("text_eng", "text_ger"), ("en", "de")),
        ],
    )
    def test_a_header_names_columns_and_languages(self, project, capsys, header, wanted, languages):
        self.write(project, [header, *self.keyed()])
        run("bleuprint new-corpus inputs/app.tsv")
        said = capsys.readouterr().out
        source, target = wanted
        assert said.startswith(
            f"inputs/app.tsv: source is column 2, {source!r}, target is column 3, {target!r}\n"
            "500 pairs; "
        )
        corpus = load_settings().corpora["app-en-de"]
        (part,) = corpus.files.train.values()
        assert (part.columns, corpus.languages) == (wanted, languages)
        assert sorted(read_text_pairs(part, corpus.languages)) == sorted(GOOD)

    def test_languages_that_are_given_choose_among_the_columns_of_a_header(self, project):
        rows = [("key", "de", "note", "en"), *((k, b, "menu", a) for k, a, b in self.keyed())]
        self.write(project, rows)
        new = NewCorpus.from_files([Path("inputs/app.tsv")], ["en", "ger"])
        assert (new.text.columns, new.languages) == (("en", "de"), ("en", "de"))
        assert sorted(new.sample) == sorted(GOOD)

    def test_keys_are_left_out_without_a_header(self, project, capsys):
        self.write(project, self.keyed())
        run("bleuprint new-corpus inputs/app.tsv --languages en de")
        said = capsys.readouterr().out
        assert said.startswith("inputs/app.tsv: source is column 2, target is column 3\n500 pairs;")
        (part,) = load_settings().corpora["app-en-de"].files.train.values()
        assert part.columns == (2, 3)

    def test_columns_that_are_named(self, project):
        rows = [("key", "text", "text2", "note"), *((k, a, b, a) for k, a, b in self.keyed())]
        self.write(project, rows)
        for columns, wanted in ((["3", "2"], (3, 2)), (["text2", "note"], ("text2", "note"))):
            new = NewCorpus.from_files([Path("inputs/app.tsv")], ["de", "en"], columns)
            assert new.text.columns == wanted
            assert {pair[::-1] for pair in GOOD} <= {*new.sample}
        assert len(new.sample) == 500  # without the header

    def test_columns_of_one_name_are_known_by_their_numbers(self, project):
        rows = [("key", "en", "de", "en"), *((k, "x", b, a) for k, a, b in self.keyed())]
        self.write(project, rows)
        new = NewCorpus.from_files([Path("inputs/app.tsv")], None, ["4", "3"])
        assert (new.text.columns, new.languages) == ((4, 3), ("en", "de"))
        assert {*GOOD} <= {*new.sample}

    @pytest.mark.parametrize("is_swapped", [False, True])
    def test_languages_that_are_given_decide_the_order_of_two_columns(self, project, is_swapped):
        rows = [pair[::-1] for pair in GOOD] if is_swapped else GOOD
        self.write(project, rows)
        for path in ("inputs/app.tsv", "inputs/app.en-de.tsv"):
            self.write(project, rows, Path(path).name)
            given = None if "en-de" in path else ["en", "de"]
            new = NewCorpus.from_files([Path(path)], given)
            assert new.languages == ("en", "de")
            assert new.text.columns == ((2, 1) if is_swapped else (1, 2))
            assert sorted(new.sample) == sorted(GOOD)

    def test_columns_in_the_other_order_are_refused_with_a_command_that_works(self, project):
        self.write(project, [("id", "Source text", "Target text"), *self.keyed()])
        files = [Path("inputs/app.tsv")]
        with pytest.raises(UserError) as error:
            NewCorpus.from_files(files, ["de", "en"], ["Source text", "Target text"])
        assert str(error.value).startswith("inputs/app.tsv: 100% of the pairs are en and de, not")
        assert "rename" not in str(error.value)
        command = "--columns 'Target text' 'Source text' --languages de en"
        assert str(error.value).endswith(f": {command}")
        new = NewCorpus.from_files(files, ["de", "en"], ["Target text", "Source text"])
        assert sorted(pair[::-1] for pair in new.sample) == sorted(GOOD)

    def test_a_header_of_source_and_target(self, project):
        self.write(project, [("id", "Source", "Target"), *self.keyed()])
        new = NewCorpus.from_files([Path("inputs/app.tsv")], ["en", "de"])
        assert new.text.columns == ("Source", "Target")
        assert sorted(new.sample) == sorted(GOOD)

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
    def test_a_column_that_is_no_language_is_refused(self, project, arguments, message):
        self.write(project, [(*row, "0.5") for row in self.keyed()])
        line = f"bleuprint new-corpus inputs/app.tsv --languages en de {' '.join(arguments)}"
        with pytest.raises(UserError, match=message):
            run(line)

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([("a.b", "One.")] * 200, r"app\.tsv: two columns of sentences are needed, but column"),
            ([("only one",)] * 200, r"app\.tsv:1: the line has no tab"),
            (
                [("en", "de", "fr"), *((a, b, a) for a, b in GOOD)],
                r"app\.tsv:1: columns in en, de, fr\. Name two languages, .* --languages en de",
            ),
            (
                [("en", "en-GB", "de"), *((a, a, b) for a, b in GOOD)],
                r"app\.tsv:1: several columns are in one language\. Name two: --columns",
            ),
            (
                [(a, a, b) for a, b in GOOD],
                r"app\.tsv: 3 columns of text\. Name two: --columns SOURCE TARGET\. Columns: 1",
            ),
        ],
    )
    def test_what_is_not_clear_is_refused(self, project, rows, message):
        self.write(project, rows)
        with pytest.raises(UserError, match=message):
            run("bleuprint new-corpus inputs/app.tsv")

    def test_the_example_names_the_language_in_the_name_of_the_file(self, project):
        self.write(project, GOOD, "app.nl.tsv")
        with pytest.raises(UserError, match=r"Name both, such as: --languages nl en$"):
            run("bleuprint new-corpus inputs/app.nl.tsv")

    def test_columns_are_for_tables(self, project):
        new_corpus(project, GOOD)
        with pytest.raises(UserError, match=r"mine\.en: --columns is for a \.tsv file"):
            run("bleuprint new-corpus inputs/mine.en inputs/mine.de --columns 1 2")


class TestMemory:
    """A .tmx file: its language codes, and variants of a language."""

    def write(self, project, units, name="memory.tmx"):
        body = ""
        for unit in units:
            variants = [f'<tuv xml:lang="{c}"><seg>{escape(t)}</seg></tuv>' for c, t in unit]
            body += f"<tu>{''.join(variants)}</tu>"
        text = f'<tmx version="1.4"><header/><body>{body}</body></tmx>'
        (project / "inputs" / name).write_text(text, encoding="utf-8")

    def test_codes_of_all_kinds_are_equal_and_counted(self, project, capsys):
        codes = [("en", "de"), ("eng", "ger"), ("EN_us", "deu"), ("en-US", "de-AT")]
        units = [[*zip(codes[n % 4], pair, strict=True)] for n, pair in enumerate(GOOD)]
        self.write(project, units)
        run("bleuprint new-corpus inputs/memory.tmx")
        output = capsys.readouterr()
        assert output.out.startswith(
            "inputs/memory.tmx: units by language code: en (125), de (125), eng (125), ger (125), "
            "EN_us (125), deu (125), en-US (125), de-AT (125)\n500 pairs; "
        )
        assert "mixes" not in output.err  # two spellings of US English, and one of Austrian German
        corpus = load_settings().corpora["memory-en-de"]
        (part,) = corpus.files.train.values()
        assert sorted(read_text_pairs(part, corpus.languages)) == sorted(GOOD)

    @pytest.mark.parametrize(
        ("in_file", "given"),
        [
            (("iw", "no-NO"), ("he", "nb")),
            (("heb", "nob"), ("he", "no")),
            (("he-IL", "nb_NO"), ("iw", "nor")),
            (("in", "fil"), ("id", "tl")),
            (("cmn-Hans", "per"), ("zh", "fas")),
        ],
    )
    def test_old_codes_and_three_letters(self, project, in_file, given):
        self.write(project, [[*zip(in_file, pair, strict=True)] for pair in GOOD])
        path = Path("inputs/memory.tmx")
        for languages in (None, in_file, given):
            new = NewCorpus.from_files([path], languages)
            assert sorted(new.sample) == sorted(GOOD)

    def test_an_empty_variant_does_not_hide_a_full_one(self, project):
        units = [[("en-US", ""), ("en-GB", a), ("de", b), ("de-CH", "")] for a, b in GOOD]
        self.write(project, units)
        assert sorted(NewCorpus.from_files([Path("inputs/memory.tmx")]).sample) == sorted(GOOD)

    def test_codes_that_are_exchanged_are_refused(self, project):
        self.write(project, [[("de", a), ("en", b)] for a, b in GOOD])
        for languages in (["de", "en"], ["en", "de"]):
            with pytest.raises(UserError, match="exchange the two language codes") as error:
                NewCorpus.from_files([Path("inputs/memory.tmx")], languages)
            assert "rename" not in str(error.value)

    def test_a_variant_can_be_chosen(self, project, capsys):
        units = [[("en-US", f"x {a}"), ("en-GB", a), ("de", b)] for a, b in GOOD]
        units += [[("en-US", "x"), ("de", "y")]] * 7
        self.write(project, units)
        run("bleuprint new-corpus inputs/memory.tmx --languages en-gb de")
        output = capsys.readouterr()
        assert "inputs/memory.tmx: 7 of 507 units lack one of the languages\n" in output.out
        assert "mixes" not in output.err
        corpus = load_settings().corpora["memory-en-de"]
        (part,) = corpus.files.train.values()
        assert part.languages == ("en-gb", "de")
        assert sorted(read_text_pairs(part, corpus.languages)) == sorted(GOOD)
        NewCorpus.from_files([Path("inputs/memory.tmx")], ["en", "de"])
        assert capsys.readouterr().err == (
            "bleuprint: note: inputs/memory.tmx: en mixes en-US (507), en-GB (500). If a unit has "
            "several variants of a language, the first is taken. One variant alone leaves 507 "
            "pairs: --languages en-US de\n"
        )

    def test_variants_of_both_sides_are_named_in_one_command(self, project, capsys):
        """By hand: en-US has more units than en-GB, but at most 130 pairs with one variant."""
        codes = [("en-US", "de-AT")] * 130 + [("en_us", "de_DE")] * 90
        codes += [("en-GB", "de-DE")] * 160 + [("eng", "ger")] * 120
        self.write(project, [[*zip(*each, strict=True)] for each in zip(codes, GOOD, strict=True)])
        NewCorpus.from_files([Path("inputs/memory.tmx")])
        assert capsys.readouterr().err == (
            "bleuprint: note: inputs/memory.tmx: en mixes en-US (220), en-GB (160), en (120); "
            "de mixes de_DE (250), de-AT (130), de (120). One variant alone leaves 160 pairs: "
            "--languages en-GB de_DE\n"
        )

    def test_a_unit_with_a_language_and_its_variant_has_several(self, project, capsys):
        self.write(project, [[("en", a), ("en-GB", a), ("ger", b), ("de", b)] for a, b in GOOD])
        NewCorpus.from_files([Path("inputs/memory.tmx")])
        said = capsys.readouterr().err
        assert "en mixes en (500), en-GB (500). If a unit has several" in said
        assert "leaves 500 pairs: --languages en-GB de\n" in said
        assert "de mixes" not in said

    def test_the_example_names_languages_of_the_file(self, project):
        units = [[("en", a), ("no", b), ("nn", b)] for a, b in GOOD]
        units += [[("en", a), ("fr", b)] for a, b in GOOD[:9]]
        self.write(project, units)
        with pytest.raises(UserError, match=r"name two languages, such as: --languages en no\. "):
            NewCorpus.from_files([Path("inputs/memory.tmx")])
        self.write(project, [[("en-US", a), ("en-GB", a)] for a, b in GOOD])
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
    def test_languages_that_are_not_there_are_refused(self, project, arguments, message):
        self.write(project, [[("en", a), ("de", b), ("fr-FR", a)] for a, b in GOOD])
        with pytest.raises(UserError, match=message):
            run(f"bleuprint new-corpus inputs/memory.tmx {arguments}")
