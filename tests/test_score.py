"""Scores equal sacreBLEU's command line, run beside, and figures worked by hand."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import result_trees as trees
from bleuprint import score
from bleuprint.errors import UserError
from bleuprint.files import read_json, sha256_of
from bleuprint.layout import Cell
from bleuprint.pairs import TextFolder

STAGE = Path(__file__).parents[1] / "stages" / "score.py"

# Line separators to Python or Unicode, none of them a line end here.
SEPARATORS = ["\r", "\x85", "\u2028", "\u2029", "\x1c", "\x1d", "\x1e", "\x0b", "\x0c"]


def sacrebleu(*arguments: str | Path) -> Any:
    """sacreBLEU's command line, its JSON read."""
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "-f", "json", "-w", "6"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def text(kind: str, lines: int = 60) -> tuple[list[str], list[str], list[str]]:
    """References, good and worse translations, with what tokenizers must take care of."""
    if kind == "zh":
        references = [f"我们在{i}月学习机器翻译,这是第{i * 7 % 13}句话。" for i in range(lines)]
        return references, [r.replace("第1", "一") for r in references], references[::-1]
    references = [
        f'Der "Ärger"-Faktor von Haus {i}: {i * 7 % 13},5 &amp; mehr.' for i in range(lines)
    ]
    good = [r.replace("Haus 1", "haus 1").replace("mehr", "") for r in references]
    return references, good, [r.replace("Faktor von", "Faktoren aus") for r in good]


@pytest.mark.parametrize("language", ["de", "zh"])
def test_scores_equal_the_command_line(tmp_path: Path, language: str) -> None:
    references, good, _ = text(language)
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "hypotheses", good)
    files = tmp_path / "references", tmp_path / "references", tmp_path / "hypotheses"
    ours = score.score_files(*files, language)
    options = ("-l", f"en-{language}", "-m", "bleu", "chrf", "--confidence")
    bleu, chrf = sacrebleu(tmp_path / "references", *options, "-i", tmp_path / "hypotheses")
    for mine, theirs in ((ours["bleu"], bleu), (ours["chrf"], chrf)):
        assert 0 < theirs["score"] < 100 and theirs["confidence_var"] > 0
        assert mine["score"] == theirs["score"]
        assert mine["signature"] == theirs["signature"]
        mean, half = theirs["confidence_mean"], theirs["confidence_var"]
        assert (mine["low"], mine["high"]) == (round(mean - half, 6), round(mean + half, 6))
    assert f"tok:{'zh' if language == 'zh' else '13a'}|" in ours["bleu"]["signature"]
    assert f"BP = {ours['bleu']['brevity_penalty']:.3f}" in bleu["verbose_score"]
    assert ours["lines"] == 60
    assert ours["references"] == sha256_of(tmp_path / "references")
    assert ours["hypotheses"] == sha256_of(tmp_path / "hypotheses")


def test_bleu_worked_by_hand() -> None:
    # Precisions 5/6, 3/5, 2/4, 1/3: their product is 1/12, its fourth root 0.537285.
    result = score.bleu(["the cat sat on the mat"], ["the cat sat on a mat"], "en")
    assert result["score"] == pytest.approx(53.728497, abs=1e-6)
    assert result["brevity_penalty"] == 1.0
    # All of 4 words right, 2 missing: exp(1 - 6/4).
    result = score.bleu(["the cat sat on"], ["the cat sat on the mat"], "en")
    assert result["score"] == pytest.approx(60.653066, abs=1e-6)
    assert result["brevity_penalty"] == pytest.approx(0.606531, abs=1e-6)


def test_bleu_is_cased_and_smooths_as_mteval() -> None:
    # Right: 4 of 5 words, 2 of 4 pairs, 0 of 3 and 0 of 2, counted as 1/2 and 1/4 of a match.
    result = score.bleu(["a b X d e"], ["a b x d e"], "en")
    expected = 100 * (4 / 5 * 2 / 4 * 1 / (2 * 3) * 1 / (4 * 2)) ** 0.25
    assert result["score"] == pytest.approx(expected, abs=1e-6)


def test_chrf_worked_by_hand() -> None:
    # Characters 2/3, pairs 1/2, triples 0, longer ones none: the mean is 7/18 both ways.
    assert score.chrf(["ab c"], ["a bd"])["score"] == pytest.approx(100 * 7 / 18, abs=1e-6)


def test_an_interval_stays_on_the_scale() -> None:
    references = [f"one two three four five {i}" for i in range(30)]
    nearly = [*references[:-1], "nothing of it"]
    for result in (score.bleu(nearly, references, "en"), score.chrf(nearly, references)):
        assert 0 < result["low"] < result["score"] < result["high"] <= 100
    hardly = score.bleu([references[0], *["x y"] * 29], references, "en")
    assert 0 == hardly["low"] < hardly["score"] < hardly["high"]
    nothing = score.bleu(["x"] * 30, references, "en")
    assert (nothing["score"], nothing["low"], nothing["high"]) == (0, 0, 0)


def test_the_seed_is_not_the_users_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    references, good, worse = text("de")
    before = score.bleu(good, references, "de"), score.chrf(good, references)
    tested = score.paired_tests({"a": good, "b": worse}, references, "de")
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    assert (score.bleu(good, references, "de"), score.chrf(good, references)) == before
    assert score.paired_tests({"a": good, "b": worse}, references, "de") == tested
    assert "seed:12345" in before[0]["signature"]


def test_paired_tests_equal_the_command_line(tmp_path: Path) -> None:
    references, good, worse = text("de")
    similar = [*good[:-2], *references[-2:]]
    systems = {"good": good, "worse": worse, "similar": similar}
    for name, lines in {"references": references, **systems}.items():
        trees.write_lines(tmp_path / name, lines)
    ours = score.paired_tests(systems, references, "de")
    inputs = [tmp_path / name for name in systems]
    theirs = sacrebleu(tmp_path / "references", "-l", "en-de", "--paired-bs", "-i", *inputs)
    p_values = [row["BLEU"]["p_value"] for row in theirs[1:]]
    assert list(ours) == ["worse", "similar"]
    assert list(ours.values()) == pytest.approx(p_values, abs=1e-6)
    assert ours["worse"] < 0.05 < ours["similar"]


def test_identical_translations_do_not_differ() -> None:
    references, good, worse = text("de")
    tested = score.paired_tests({"a": good, "b": worse, "c": list(good)}, references, "de")
    assert tested["c"] == 1.0
    assert tested["b"] < 0.05


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_line_ends_at_newline_only(tmp_path: Path, separator: str) -> None:
    references = [f"the sentence {separator} number {i} is short" for i in range(20)]
    trees.write_lines(tmp_path / "references", references)
    # sacreBLEU takes every one of the separators for a space between words.
    spaced = [line.replace(separator, " ") for line in references]
    trees.write_lines(tmp_path / "hypotheses", spaced)
    files = tmp_path / "references", tmp_path / "references", tmp_path / "hypotheses"
    ours = score.score_files(*files, "en")
    assert ours["lines"] == 20
    assert ours["bleu"]["score"] == ours["chrf"]["score"] == 100
    # The same the other way round, shifted by a line, is wrong: the lines are held in order.
    trees.write_lines(tmp_path / "hypotheses", [*references[1:], references[0]])
    assert score.score_files(*files, "en")["bleu"]["score"] < 90


def test_torture_text_equals_the_command_line_on_files(tmp_path: Path) -> None:
    odd = [*SEPARATORS, "\ufeff", "\u202e", "\x00", "😀\u200d", "\t", "ــ", "e\u0301"]
    references = [
        f"the {mark} sentence {mark}{i} is short {mark}" for i, mark in enumerate(odd * 3)
    ]
    good = [
        line.replace("short", "long") if i % 5 == 0 else line for i, line in enumerate(references)
    ]
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "hypotheses", good)
    files = tmp_path / "references", tmp_path / "references", tmp_path / "hypotheses"
    ours = score.score_files(*files, "en")
    options = ("-m", "bleu", "chrf", "-i", tmp_path / "hypotheses")
    bleu, chrf = sacrebleu(tmp_path / "references", *options)
    assert ours["lines"] == len(references)
    assert (ours["bleu"]["score"], ours["chrf"]["score"]) == (bleu["score"], chrf["score"])


@pytest.mark.parametrize(("language", "extra"), [("ja", "ja"), ("jpn", "ja"), ("ko", "ko")])
def test_a_tokenizer_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, language: str, extra: str
) -> None:
    for module in ("tokenizer_ja_mecab.MeCab", "tokenizer_ko_mecab.MeCab"):
        monkeypatch.setattr(f"sacrebleu.tokenizers.{module}", None)
    with pytest.raises(UserError, match=rf"pip install 'sacrebleu\[{extra}\]'"):
        score.bleu(["a"], ["a"], language)


def test_three_letter_codes_get_the_same_tokenizer() -> None:
    references, good, _ = text("zh")
    assert score.bleu(good, references, "zho") == score.bleu(good, references, "zh")


def test_test_sets_come_in_the_order_of_the_settings(tmp_path: Path) -> None:
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("zeta", "alpha")})
    trees.write_texts(tmp_path, settings)
    texts = TextFolder(tmp_path / "data" / "split" / "c-en-de", "en", "de")
    for side in texts.files("test.made"):
        trees.write_lines(side, ["one"])
    assert score.names_of_tests(settings.corpus("c-en-de"), texts) == ["zeta", "alpha", "made"]
    texts.files("test.alpha")[0].unlink()
    with pytest.raises(UserError, match=r"split/c-en-de/test\.alpha\.en: no such file"):
        score.names_of_tests(settings.corpus("c-en-de"), texts)


def test_a_corpus_without_a_test_set(tmp_path: Path) -> None:
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ()})
    trees.write_texts(tmp_path, settings)
    with pytest.raises(UserError, match="split/c-en-de: holds no test set"):
        score.score_cell(settings, "tiny", "c-en-de", 1, tmp_path)


class TestStage:
    """The script, run as DVC runs it."""

    @pytest.fixture
    def cell(self, tmp_path: Path) -> Path:
        settings = trees.settings_in(tmp_path)
        trees.write_texts(tmp_path, settings)
        cell = Cell("tiny", "news-en-de", 1)
        trees.write_cell(tmp_path, settings, cell, 0.3)
        ((tmp_path / cell.results) / "scores.json").rename(tmp_path / "expected.json")
        return tmp_path / cell.results

    def run(self, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", str(STAGE), *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    def test_writes_the_scores_of_all_test_sets(self, cell: Path, tmp_path: Path) -> None:
        done = self.run(tmp_path, "tiny", "news-en-de", "1")
        assert (done.returncode, done.stderr) == (0, "")
        assert (cell / "scores.json").read_bytes() == (tmp_path / "expected.json").read_bytes()
        scores = read_json(cell / "scores.json")
        assert list(scores) == ["first", "second"]
        assert list(scores["first"]) == [
            "lines",
            "bleu",
            "chrf",
            "sources",
            "references",
            "hypotheses",
        ]
        assert scores["first"]["references"] != scores["second"]["references"]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"one\n" * 39, "first.de has 40 lines and {file} has 39: not parallel"),
            (b"one\n" * 41, "first.de has 40 lines and {file} has 41: not parallel"),
            (b"one\n" * 7 + b"ab\xff\n", "{file}:8: byte 3 of the line is 0xff: not UTF-8"),
            (None, "{file}: no such file"),
        ],
    )
    def test_bad_translations(
        self, cell: Path, tmp_path: Path, content: bytes | None, message: str
    ) -> None:
        file = cell / "hypotheses" / "test.first.de"
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        self.fails(tmp_path, cell, message.format(file=file.relative_to(tmp_path)))

    def test_an_empty_test_set(self, cell: Path, tmp_path: Path) -> None:
        references = tmp_path / "data" / "split" / "news-en-de" / "test.first.de"
        references.write_bytes(b"")
        (cell / "hypotheses" / "test.first.de").write_bytes(b"")
        self.fails(tmp_path, cell, "test.first.de: no lines: nothing to score")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("tny", "news-en-de", "1"), "no systems entry 'tny'"),
            (("tiny", "news", "1"), "no corpora entry 'news'"),
            (("tiny", "news-en-de", "2"), "no seed 2; seeds are [1]"),
        ],
    )
    def test_an_unknown_cell(
        self, cell: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
    ) -> None:
        self.fails(tmp_path, cell, message, *arguments)

    def fails(self, root: Path, cell: Path, message: str, *arguments: str) -> None:
        done = self.run(root, *(arguments or ("tiny", "news-en-de", "1")))
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert message in done.stderr
        assert not (cell / "scores.json").exists()


def test_translations_of_nothing_score_nothing() -> None:
    references = ["the cat sat", "on the mat", "all day"]
    assert score.chrf(["", "", ""], references)["score"] == 0
    assert score.bleu(["", "", ""], references, "en")["score"] == 0
