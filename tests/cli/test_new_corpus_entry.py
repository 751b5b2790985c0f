"""The entry that new-corpus adds to params.yaml: its name, files and filter rules."""

import re
import unicodedata
from pathlib import Path

import pytest
from dvc.repo import Repo

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.insert_corpus import insert_corpus
from bleuprint.corpus.new_corpus import NewCorpus
from bleuprint.pipeline.resolve import md5_of_input_files
from bleuprint.runtime.errors import UserError
from corpora import TORTURE
from new_corpus import (
    FIVE_HUNDRED_PAIRS,
    analyze_pairs,
    run_command,
    swap_sides,
    tmx_text,
    write_pairs,
)
from params import PARAMS
from root import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_command_of_the_readme_adds_an_entry_and_says_what_comes_next(project, capsys):
    """README.md shows `$ bleuprint new-corpus ...` with the files mine.de and mine.en in inputs/.

    Here these contain 500 pairs. A tenth, 50, becomes the validation set, another the test set.
    """
    (readme_command,) = re.findall(r"(?m)^\$ (bleuprint new-corpus .*)", README)
    write_pairs(project, swap_sides(FIVE_HUNDRED_PAIRS), names=("mine.de", "mine.en"))

    run_command(readme_command)

    output = capsys.readouterr()
    first_lines = "500 pairs; params.yaml has a new entry in place of the example:\n\n"
    assert output.out.startswith(f"{first_lines}  mine-de-en:\n")
    assert output.err == (
        "bleuprint: note: the test set has only 50 pairs. Comparing systems needs at least 100. "
        "Add text, or name a test set of your own in files.tests\n"
    )
    printed_entry = output.out.removeprefix(first_lines).partition("\n\n")[0]
    params = (project / "params.yaml").read_text(encoding="utf-8")
    assert printed_entry in params
    assert params.count("  mine-de-en:") == 1
    last_line_patterns = [
        r"^500 of 500 pairs remain after the rules: train 400, valid 50, test 50$",
        r"^small trains for at most [\d,]+ updates, [\d.]+ epochs: \d+ minutes$",
        r"^medium trains for at most ",
        r"^forecast for \S+, without other corpora: \d+ minutes?, on \d+ idle cores? of this",
        r"raise its train\.max_updates",
        r"^400 training pairs are few\. ",
        r"^Next: state the license",
        r"^Next: bleuprint inspect mine-de-en ",
        r"^Next: make reproduce ",
    ]
    last_lines = output.out.splitlines()[-len(last_line_patterns) :]
    for line, pattern in zip(last_lines, last_line_patterns, strict=True):
        assert re.search(pattern, line), line


def test_check_accepts_the_entry_that_new_corpus_adds(project, capsys):
    write_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.en", "mine.de"))
    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")
    capsys.readouterr()

    run_command("bleuprint check")

    output = capsys.readouterr()
    assert output.out == "own: params.yaml is valid\n"
    assert "no such file" not in output.err  # `check` notes entries whose files are missing.
    # new-corpus adds two systems, which train on the new corpus.
    assert list(load_settings().trained_systems_on("mine-en-de")) == ["small", "medium"]


def test_the_same_files_cannot_be_added_twice(project):
    """The first command adds the corpus mine-en-de, named after the files and languages."""
    write_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.en", "mine.de"))
    command = "bleuprint new-corpus inputs/mine.en inputs/mine.de"
    run_command(command)

    with pytest.raises(UserError, match=r"corpus mine-en-de is already defined\. Remove or"):
        run_command(command)


def test_a_note_says_that_systems_sized_for_the_first_corpus_stay_for_the_second(project, capsys):
    """new-corpus writes systems whose sizes fit the first text; it does not replace them later."""
    write_pairs(project, FIVE_HUNDRED_PAIRS, names=("first.en", "first.de"))
    run_command("bleuprint new-corpus inputs/first.en inputs/first.de")
    write_pairs(project, FIVE_HUNDRED_PAIRS, names=("second.en", "second.de"))
    capsys.readouterr()

    run_command("bleuprint new-corpus inputs/second.en inputs/second.de")

    assert "params.yaml keeps its systems. Their sizes do not fit" in capsys.readouterr().err


def test_files_with_unusual_names_and_characters_become_an_entry(project):
    """TORTURE has characters that software often mistakes, such as separators and quotes."""
    (project / "params.yaml").write_text(PARAMS)
    unusual_texts = TORTURE * 10
    pairs = []
    for (english, german), text in zip(FIVE_HUNDRED_PAIRS, unusual_texts, strict=False):
        pairs.append((f"{english}{text}", f"{german}{text} x"))
    assert len(pairs) == len(unusual_texts)
    names = ['my "text" ü:#.en', 'my "text" ü:#.de']

    new = analyze_pairs(project, pairs, names)
    insert_corpus(project / "params.yaml", new, None, "")

    assert new.pairs == len(pairs)
    files = load_settings().corpora["my-text-u-en-de"].files.files_by_name()
    paths = [file.path for file in files.values()]
    assert paths == ['inputs/my "text" ü:#.en', 'inputs/my "text" ü:#.de']


def test_the_files_and_the_citation_of_an_entry_are_named_after_the_files(project):
    """An entry names a set of files by the words that the file names share: talks_2."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names=("talks_2-en.txt", "talks_2-de.txt"))

    assert new.name == "talks-2-en-de"
    assert list(new.corpus.files.train) == ["talks-2"]
    assert list(new.corpus.license_and_citation) == ["talks-2"]
    bibtex = new.corpus.license_and_citation["talks-2"].bibtex
    assert bibtex == "@misc{talks-2, title = {{talks-2}}}"


def rule_names(new):
    """Return the names of the filter rules of a new entry."""
    return {rule.name() for rule in new.corpus.filter}


def test_1000_pairs_are_filtered_by_word_alignment_and_500_pairs_are_not(project):
    """The rule trains a word aligner on the text itself, which takes enough text."""
    rules_for_500_pairs = rule_names(analyze_pairs(project, FIVE_HUNDRED_PAIRS))
    rules_for_1000_pairs = rule_names(analyze_pairs(project, FIVE_HUNDRED_PAIRS * 2))

    assert rules_for_1000_pairs - rules_for_500_pairs == {"word_alignment"}


def test_the_filter_omits_language_id_for_a_language_it_cannot_identify(project):
    """Cherokee (chr) is such a language: the rule would drop each pair."""
    names = ("a.en", "a.de")

    for_german = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names, languages=("en", "de"))
    for_cherokee = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names, languages=("en", "chr"))

    assert rule_names(for_german) - rule_names(for_cherokee) == {"language_id"}


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
        pytest.param(("en.txt", "de.txt"), None, "mine-en-de", id="only languages"),
        pytest.param(("train.src", "train.tgt"), ("en", "de"), "train-en-de", id="roles"),
    ],
)
def test_a_corpus_is_named_after_its_files_and_languages(project, names, languages, corpus_name):
    """The name is what both file names share, in ASCII, or `mine` if they share no such word."""
    new = analyze_pairs(project, FIVE_HUNDRED_PAIRS, names, languages)

    assert new.name == corpus_name
    assert list(new.corpus.languages) == list(new.languages)


@pytest.mark.parametrize("file_format", ["tsv", "tmx"])
def test_one_file_can_contain_both_languages(project, file_format):
    """Such a file is a table (.tsv) or a translation memory (.tmx)."""
    path = project / "inputs" / f"memory.en-de.{file_format}"
    if file_format == "tsv":
        content = "".join(f"{english}\t{german}\tnote\n" for english, german in FIVE_HUNDRED_PAIRS)
    else:
        units = [[("en", english), ("de", german)] for english, german in FIVE_HUNDRED_PAIRS]
        content = tmx_text(units)
    path.write_text(content, encoding="utf-8")

    new = NewCorpus.from_files([path.relative_to(project)], None)

    assert new.name == "memory-en-de"
    assert new.pairs == 500
    assert sorted(new.sample) == sorted(FIVE_HUNDRED_PAIRS)
    (part,) = new.corpus.files.train.values()
    assert part.format == file_format
    assert part.both.path == f"inputs/memory.en-de.{file_format}"


@pytest.fixture(params=[("NFD", "NFC"), ("NFC", "NFD")], ids=["NFD on disk", "NFC on disk"])
def normalized_names(request, project, capsys):
    """Run new-corpus with names in another Unicode form than the files on disk have.

    Two names that look the same may be composed (NFC) or decomposed (NFD): macOS stores NFD, and
    a shell passes what the user types.

    Returns:
        The form that the user types, and the paths of the two files as they are on disk.
    """
    form_on_disk, typed_form = request.param
    (project / "inputs" / unicodedata.normalize(form_on_disk, "Ä")).mkdir()
    names = [unicodedata.normalize(form_on_disk, f"Ä/Übung.{code}") for code in ("en", "de")]
    write_pairs(project, FIVE_HUNDRED_PAIRS, names)
    typed_paths = [unicodedata.normalize(typed_form, f"inputs/{name}") for name in names]
    run_command(f"bleuprint new-corpus {' '.join(typed_paths)}")
    capsys.readouterr()
    return typed_form, [f"inputs/{name}" for name in names]


def test_new_corpus_writes_file_names_in_the_unicode_form_of_the_disk(normalized_names):
    _, paths_on_disk = normalized_names

    files = load_settings().corpora["Ubung-en-de"].files.files_by_name().values()
    assert [file.path for file in files] == paths_on_disk


def test_files_are_found_if_params_yaml_has_another_unicode_form(normalized_names, capsys):
    """An editor may save params.yaml in the form that the user types: Ä as one or two characters.

    If this fails, `check`, `inspect` or DVC report files as missing that the user can see.
    """
    typed_form, _ = normalized_names
    params = Path("params.yaml")
    params.write_text(unicodedata.normalize(typed_form, params.read_text("utf-8")), "utf-8")

    run_command("bleuprint check")
    assert "no such file" not in capsys.readouterr().err

    run_command("bleuprint inspect Ubung-en-de")
    assert "clean: 500 pairs in, 500 out" in capsys.readouterr().out

    Repo.init(no_scm=True)
    assert len(md5_of_input_files(load_settings(), Path.cwd())["Ubung-en-de"]) == 2
