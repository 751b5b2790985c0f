"""Two systems side by side, as `bleuprint compare` prints them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import processes
import result_trees as trees
from bleuprint.config.paths import Cell
from bleuprint.report.compare import changes
from bleuprint.runtime.files import read_json
from bleuprint.scoring.record import value_of
from bleuprint.text.parallel import read_lines
from scoring import text

TEST = "test.first"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two systems; 5 of 40 lines are worse in the second, control characters in one."""
    root = tmp_path_factory.mktemp("tree")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first", "second")})
    trees.write_all(root, settings)
    split = root / "data" / "split" / "news-en-de"
    references = list(read_lines(split / f"{TEST}.de"))
    for system in ("tiny", "small"):
        path = root / Cell(system, "news-en-de", 1).results / "hypotheses" / f"{TEST}.de"
        lines = list(references)
        if system == "tiny":
            for number in (3, 8, 9):  # of the same BLEU: nothing right
                lines[number] = "nothing"
            lines[20] = f"\x1b[31m{references[20]}\x9b\u202e"
        else:
            lines[30] = "\u2028\tworse"
        trees.write_lines(path, lines)
        trees.write_translation(root, settings, Cell(system, "news-en-de", 1))
        trees.write_maps(root, settings, Cell(system, "news-en-de", 1))
        trees.score_cell(settings, system, "news-en-de", 1, root)
    return root


def compare(root: Path, *arguments: str, status: int = 0) -> str:
    """What `bleuprint compare` prints: on stderr if it fails."""
    command = [sys.executable, "-m", "bleuprint.cli.main", "compare", *arguments]
    done = processes.run_text(command, root)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def test_scores_stand_side_by_side(tree: Path) -> None:
    output = compare(tree, "tiny", "small", "--corpus", "news-en-de")
    assert "\ntiny and small on news-en-de, seed 1, test set first\n" in output
    tiny, small = (
        read_json(tree / Cell(system, "news-en-de", 1).results / "scores.json")["first"]
        for system in ("tiny", "small")
    )
    labels = {"bleu": "BLEU", "chrf2": "chrF2", "chrf2pp": "chrF2++", "ter": "TER"}
    for metric, label in labels.items():
        first, second = value_of(tiny, metric), value_of(small, metric)
        assert first is not None and second is not None
        cells = [label, f"{first:.1f}", f"{second:.1f}", f"{second - first:+.1f}"]
        row = "  +".join(map(re.escape, ("first", *cells)))
        assert re.search(rf"^news-en-de  +{row}( |$)", output, re.M), output[
            output.index("\nScores") :
        ][:900]
    tests = r"p[=<]0\.\d{3} \(paired bootstrap\), p[=<]0\.\d{3} \(approx"
    assert re.search(rf"^difference in BLEU: {tests}", output, re.M)


def first_set(output: str) -> str:
    """What is printed before the sentences of the second test set."""
    return output.partition("test set second\n")[0]


def test_the_most_changed_sentences_come_first_and_in_order(tree: Path) -> None:
    output = first_set(compare(tree, "tiny", "small", "--corpus", "news-en-de"))
    better, worse = output.split("Most improved")[1].split("Most worsened")
    assert re.findall(r"^line (\d+):", better, re.M) == ["4", "9", "10", "21"]
    assert re.findall(r"^line (\d+):", worse, re.M) == ["31"]
    assert "line 4: +100.0, from 0.0 to 100.0" in better
    split = tree / "data" / "split" / "news-en-de"
    source, reference = (list(read_lines(split / f"{TEST}.{side}"))[3] for side in ("en", "de"))
    block = better.partition("line 4")[2].splitlines()[1:5]
    assert [line.split(maxsplit=1) for line in block] == [
        ["source", source],
        ["reference", reference],
        ["tiny", "nothing"],
        ["small", reference],
    ]
    turned = first_set(compare(tree, "small", "tiny", "--corpus", "news-en-de"))
    assert re.findall(r"^line (\d+):", turned, re.M) == ["31", "4", "9", "10", "21"]
    few = first_set(compare(tree, "tiny", "small", "--corpus", "news-en-de", "--sentences", "2"))
    assert re.findall(r"^line (\d+):", few, re.M) == ["4", "9", "31"]


def test_control_characters_do_not_reach_the_terminal(tree: Path) -> None:
    output = compare(tree, "tiny", "small", "--corpus", "news-en-de")
    assert "[31m" in output and "worse" in output
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", output)


def test_systems_may_be_called_as_the_lines_are(tmp_path: Path) -> None:
    corpora = {"news-en-de": ("first",)}
    settings = trees.settings_in(tmp_path, ("reference", "source"), corpora)
    trees.write_all(tmp_path, settings)
    output = compare(tmp_path, "reference", "source", "--corpus", "news-en-de")
    number, *block = output.partition("\nline ")[2].split("\n")[:5]
    cells = [Cell(system, "news-en-de", 1).results for system in ("reference", "source")]
    paths = ["data/split/news-en-de/test.first.en", "data/split/news-en-de/test.first.de"]
    paths += [(results / "hypotheses/test.first.de").as_posix() for results in cells]
    index = int(number.partition(":")[0]) - 1
    texts = [list(read_lines(tmp_path / path))[index] for path in paths]
    labels = ("source", "reference", "reference", "source")
    expected = [[label, text] for label, text in zip(labels, texts, strict=True)]
    assert [line.split(maxsplit=1) for line in block] == expected


def test_results_of_other_settings_are_refused(tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "copy")
    params = (root / "params.yaml").read_text("utf-8")
    (root / "params.yaml").write_text(params.replace("beam: 2", "beam: 3"), encoding="utf-8")
    output = compare(root, "tiny", "small", "--corpus", "news-en-de", status=1)
    assert "translation.json: translated with decode.beam 2, but params.yaml has 3" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tiny", "smal"), "no systems entry 'smal'"),
        (("tiny", "tiny"), "tiny: compared with itself"),
        (("tiny", "small", "--corpus", "new"), "no corpora entry 'new'"),
    ],
)
def test_what_is_not_there(tree: Path, arguments: tuple[str, ...], message: str) -> None:
    output = compare(tree, "--corpus", "news-en-de", *arguments, status=1)
    assert output.count("\n") == 1
    assert message in output


@pytest.mark.parametrize("language", ["de", "zh"])
def test_sentence_scores_equal_the_command_line(tmp_path: Path, language: str) -> None:
    # the last lines are shorter than the longest n-grams
    ends = ["Ja", "so gut"], ["Ja", "gut so"], ["Nein", "so gut"]
    made = zip(text(language), ends, strict=True)
    references, good, worse = ([*lines, *end] for lines, end in made)
    found = changes(good, worse, references, language)
    assert list(found.index) == list(range(1, 63))
    for name, lines in (("references", references), ("good", good), ("worse", worse)):
        trees.write_lines(tmp_path / name, lines)
    for name, ours in (("good", found["first"]), ("worse", found["second"])):
        command = [sys.executable, "-m", "sacrebleu", str(tmp_path / "references")]
        command += ["-i", str(tmp_path / name), "-l", f"en-{language}", "-sl", "-w", "6"]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        assert re.findall(r"eff:yes\S* = (\d+\.\d+) ", done.stdout) == [f"{s:.6f}" for s in ours]
        assert len(set(ours)) > 1
