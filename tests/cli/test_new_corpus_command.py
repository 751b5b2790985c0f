"""new-corpus: entries that load, what is refused, and README.md's how-to in a project of `own`."""

import gzip
import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bleuprint.cli.main import command_parser
from bleuprint.config.experiment import load
from bleuprint.corpus import phrasebook
from bleuprint.corpus.new_corpus import Example, NewCorpus, insert
from bleuprint.runtime.errors import UserError
from bleuprint.training import forecast
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


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forecast, "seconds_of_pair", lambda *_: 0.01)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "recipes").mkdir()
    for name in ("recipes/own.yaml", "params.yaml"):
        (tmp_path / name).write_text(OWN, encoding="utf-8")
    return tmp_path


# What new-corpus ends with.
SAID = [
    r"^small trains for at most [\d,]+ updates, [\d.]+ passes over the text: \d+ minutes$",
    r"^medium trains for at most ",
    r"^forecast: \d+ minutes in all, on \d+ idle cores of this machine$",
    r"raise its train\.max_updates",
    r"^500 pairs are few: ",
    r"^BLEU will be known to about ±7\.2, by a test set of some 50 pairs$",
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
    return NewCorpus.of([path.relative_to(project) for path in files], languages)


def test_what_the_readme_says(project, capsys):
    (line,) = re.findall(r"(?m)^\$ (bleuprint new-corpus .*)", README)
    new_corpus(project, [pair[::-1] for pair in GOOD], ("mine.de", "mine.en"))
    run(line)
    output = capsys.readouterr()
    start = "500 pairs; params.yaml has a new entry in place of the example:\n\n  mine-de-en:\n"
    assert output.out.startswith(start) and not output.err
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
    assert list(load().systems_on("mine-de-en")) == ["small", "medium"]
    with pytest.raises(UserError, match="has an entry mine-de-en already: remove or rename it"):
        run(line)
    new_corpus(project, GOOD, ("b.en", "b.de"))  # another one
    run("bleuprint new-corpus inputs/b.en inputs/b.de")
    assert "the systems of params.yaml stay, which were not fitted" in capsys.readouterr().err


def test_text_that_the_tokenizer_changes_is_noted(project, capsys):
    spaced = ("' {} '", "'{}'")  # Moses prints both without the spaces
    pairs = [[form.format(word) for word in pair] for pair in GOOD for form in spaced]
    new_corpus(project, pairs)
    run("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    said = capsys.readouterr().err
    assert re.search(r"note: reachable BLEU is \d\d\.\d \(tokenize -\d", said)
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
    insert(project / "params.yaml", new, None, "")
    files = load().corpora["my-text-u-en-de"].files.sides()
    assert [file.path for file in files.values()] == [f"inputs/{name}" for name in names]


def test_checks_that_cannot_judge_the_text_are_left_out(project):
    few, many, unknown = (
        {rule.name() for rule in new_corpus(project, *given).corpus.filter}
        for given in ((GOOD,), (GOOD * 2,), (GOOD, ("a.en", "a.de"), ("en", "chr")))
    )
    assert many - few == {"alignment_score"} and few - unknown == {"language_id"}


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
        ("x.txt", b"", r"x\.txt: unknown language: name both, such as: --languages de en"),
        ("none.de", None, r"inputs/none\.de: no such file"),
        ("../out.de", b"", r"must be below inputs/: copy"),
        ("mine.en", None, r"inputs/mine\.en is given twice: name the source file, then"),
        ("other.en", b"A sentence.\n", r"both names end in en: .* --languages de en"),
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
        ([pair[::-1] for pair in GOOD], r"100% of the pairs are de and en, not en and de: .* de"),
        ([("", "")] * 100, "no pair has text on both sides"),
        ([(source, source) for source, _ in GOOD], "mine.de: the same text on both sides, which"),
    ):
        with pytest.raises(UserError, match=message):
            new_corpus(project, pairs)


def test_pairs_of_other_languages_are_noted(project, capsys):
    new_corpus(project, GOOD, languages=["fr", "de"])
    assert re.search(
        "[01]% of the pairs look like fr and de: .*--languages", capsys.readouterr().err
    )
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


def test_the_columns_of_a_table_are_those_with_words(project):
    rows = enumerate(GOOD, 1)
    text = "".join(f"{number}\t{a}\t{b}\t{number / 500:.2f}\n" for number, (a, b) in rows)
    text = text.replace("0.50\n", "0.5\r0\n")  # no end of a line
    (project / "inputs" / "memory.en-de.tsv").write_text(text, encoding="utf-8")
    (project / "inputs" / "packed.en-de.tsv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("memory.en-de.tsv", "packed.en-de.tsv.gz"):
        new = NewCorpus.of([Path("inputs", name)], None)
        (part,) = new.corpus.files.train.values()
        assert part.columns == (2, 3)
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
    new = NewCorpus.of([path.relative_to(project)], None)
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
        assert insert(path, new, None, ROWS) == (False, False)
        after = path.read_text(encoding="utf-8")
        assert after.replace(f"\n{new.entry}", "") == before.decode()
        # before the comment on what follows
        assert after.partition(f"\n{new.entry}")[0].splitlines()[-1].startswith("  ")
        assert list(load(path).corpora)[-1] == new.name

    def test_line_ends_stay(self, project, new):
        path = project / "params.yaml"
        path.write_bytes(PARAMS.replace("\n", "\r\n").encode())
        insert(path, new, None, ROWS)
        after = path.read_bytes().decode()
        assert after.count("\r\n") == after.count("\n")
        assert load(path).corpora == {**load(path).corpora, new.name: new.corpus}

    def test_an_example_is_replaced_if_nobody_changed_it(self, project, new):
        path, recipe = project / "params.yaml", project / "recipes" / "own.yaml"
        recipe.write_text(PARAMS)
        example = Example.of(recipe)
        assert (example.corpora, example.systems) == (PARAMS[START:END].rstrip(), PARAMS[END:])
        path.write_text(PARAMS)
        assert insert(path, new, example, ROWS) == (True, True)
        assert path.read_text() == PARAMS[:START] + new.entry + ROWS
        path.write_text(PARAMS.replace("valid: 0.05", "valid: 0.06"))
        assert insert(path, new, example, ROWS) == (False, True)
        assert list(load(path).corpora) == ["own", new.name]
        path.write_bytes(PARAMS.replace("  base:", "  mine:").replace("\n", "\r\n").encode())
        assert insert(path, new, example, ROWS) == (True, False)
        assert load(path).systems == ["mine"]
        recipe.write_text(PARAMS[:END])
        assert Example.of(recipe) == Example(example.corpora, "")

    @pytest.mark.parametrize(
        ("old", "new_text", "message"),
        [
            ("  own:\n", "  mine-en-de:\n", r"params\.yaml:4: .* an entry mine-en-de already"),
            ("    tie_embeddings: all", "    x: 1", r"params\.yaml:\d+: .*x"),
            ("systems:\n  base:\n", "systems:\n  base:\n    corpora: {own: {}}\n", "no system is"),
        ],
    )
    def test_what_cannot_be_inserted_is_refused(self, project, new, old, new_text, message):
        path = project / "params.yaml"
        path.write_text(text := PARAMS.replace(old, new_text))
        assert text != PARAMS
        with pytest.raises(UserError, match=message):
            insert(path, new, None, "")
        assert path.read_text() == text
        assert {each.name for each in project.iterdir()} == {"params.yaml", "inputs", "recipes"}
