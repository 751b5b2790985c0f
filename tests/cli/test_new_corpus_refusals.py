"""Texts that new-corpus refuses, and what its messages advise."""

import re

import pytest

from bleuprint.runtime.errors import UserError
from new_corpus import (
    ENGLISH_SENTENCES,
    FIVE_HUNDRED_PAIRS,
    analyze_pairs,
    run_command,
    swap_sides,
    write_pairs,
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param(
            "short.de",
            b"Ein Satz.\n",
            r"inputs/mine\.en has 500 lines, but inputs/short\.de has 1, ",
            id="fewer lines",
        ),
        pytest.param(
            "empty.de",
            b"",
            r"inputs/mine\.en has 500 lines, but inputs/empty\.de has 0, ",
            id="empty",
        ),
        pytest.param(
            "latin.de",
            "gut\nschön\n".encode("latin-1"),
            r"latin\.de:2: byte 4 .* CP1252 .*: iconv",
            id="Latin-1",
        ),
        pytest.param(
            "\udcff.de", b"Satz.\n" * 500, r": its name is not UTF-8. Rename it$", id="Latin-1 name"
        ),
        pytest.param(
            "x.txt",
            b"",
            r"x\.txt: the name .* no language\. Name both .*: --languages en de$",
            id="name without a language",
        ),
        pytest.param("none.de", None, r"inputs/none\.de: no such file", id="missing"),
        pytest.param("none.csv", None, r"inputs/none\.csv: no such file", id="missing table"),
        pytest.param("../out.de", b"", r"must be below inputs/\. Copy", id="outside inputs"),
        pytest.param(
            "mine.en",
            None,
            r"inputs/mine\.en is given twice. Name the source file, then",
            id="same file",
        ),
        pytest.param(
            "other.en",
            b"A sentence.\n",
            r"both names end in en\. .* --languages en de",
            id="same language",
        ),
        pytest.param("", None, r"inputs: a folder. Name a text file", id="folder"),
        pytest.param(
            "few.de few.en",
            b"Ja.\n" * 99,
            r"two files, source and target, or one \.tsv, \.csv, ",
            id="three files",
        ),
    ],
)
def test_a_second_file_that_cannot_be_used_is_refused(project, name, content, message):
    """The first file, mine.en, has 500 sentences. `content` is None for a file not to write."""
    write_pairs(project, FIVE_HUNDRED_PAIRS, names=("mine.en", "mine.de"))
    if content is not None:
        first_name = name.split()[0]
        (project / "inputs" / first_name).write_bytes(content)

    with pytest.raises(UserError, match=message):
        run_command(f"bleuprint new-corpus inputs/mine.en inputs/{name}")


def test_the_message_about_an_extra_line_estimates_its_number(project):
    """The German file has an extra empty line 301, so that later lines do not fit each other."""
    english_path, german_path = write_pairs(project, FIVE_HUNDRED_PAIRS)
    lines = german_path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines.insert(300, "\n")
    german_path.write_text("".join(lines), encoding="utf-8")

    with pytest.raises(
        UserError, match=r"de has 501, so they are not parallel\. .* docs/corpora\.md, Documents$"
    ) as error:
        run_command(f"bleuprint new-corpus {english_path} {german_path}")

    line_number = int(re.search(r"about line (\d+)", str(error.value))[1])
    assert line_number == pytest.approx(301, abs=3)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        pytest.param(
            FIVE_HUNDRED_PAIRS[:99],
            "99 pairs are too few to train, validate and test on. Collect at least 100",
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
    """mine.en gets the first sentence of each pair, mine.de the second."""
    with pytest.raises(UserError, match=message):
        analyze_pairs(project, pairs, names=("mine.en", "mine.de"))


def test_languages_in_another_order_than_the_files_are_refused(project):
    """a.txt is English and b.txt German; the user says German and English."""
    with pytest.raises(UserError) as error:
        analyze_pairs(project, FIVE_HUNDRED_PAIRS, ("a.txt", "b.txt"), languages=("de", "en"))

    assert str(error.value) == (
        "inputs/a.txt and inputs/b.txt: 100% of the pairs are en and de, not de and en. "
        "Name the two files in the other order, or use: --languages en de"
    )


def test_a_text_of_which_the_rules_leave_nothing_is_refused(project, capsys):
    """The text repeats one English and German pair, in files named French and Russian.

    dedup leaves one of the 500 equal pairs, and language_id drops it. params.yaml stays unchanged.
    """
    repeated_pairs = [FIVE_HUNDRED_PAIRS[0]] * 500
    write_pairs(project, repeated_pairs, names=("mine.fr", "mine.ru"))
    params_before = (project / "params.yaml").read_bytes()

    with pytest.raises(
        UserError, match=r"leave too few of the 500 pairs .* dropped by language_id 1"
    ):
        run_command("bleuprint new-corpus inputs/mine.fr inputs/mine.ru")

    assert (project / "params.yaml").read_bytes() == params_before
    assert "0% of the pairs look like fr and ru" in capsys.readouterr().err
