"""A synthetic text is translated in pieces, which are kept until the whole text is translated.

In these tests a piece has a hundred lines, and the text five pieces.
"""

import os
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bleuprint.config.experiment import load_settings
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText
from bleuprint.runtime.errors import UserError
from bleuprint.serving import back_translate as stage
from bleuprint.serving import translated_pieces
from bleuprint.text.parallel import BLOCK_PAIRS
from params import write_resolved
from trainings import toy_pairs

LINES_PER_PIECE = 100
PIECES = 5
LINES = 450
KEPT = "work/pieces/more/mono"
SHARDS = "work/shards/back_translate/more/mono"
OUTPUT = "data/raw/more/synthetic-mono"


@pytest.fixture
def project(toy, tmp_path, monkeypatch):
    """Make a project with a text of 450 lines to translate, and make it the working folder."""
    root = tmp_path / "project"
    shutil.copytree(toy, root, symlinks=True)
    text = root / "data/raw/more/given/mono"
    text.mkdir(parents=True)
    sentences = [source for source, _ in toy_pairs(LINES, seed=7)]
    (text / "train.de").write_text("".join(f"{sentence}\n" for sentence in sentences))
    (text / "train.en").write_text("\n" * LINES)
    monkeypatch.chdir(root)
    monkeypatch.setattr(translated_pieces, "LINES_PER_PIECE", LINES_PER_PIECE)
    # To compute it takes longer than these translations.
    monkeypatch.setattr(stage, "code_fingerprint", lambda script: f"the code of {script}")
    set_params({})
    return root


def set_params(how, decode=None):
    """Write params.yaml, in which `micro` translates the German text `mono` for an English source.

    Args:
        how: Settings of the synthetic text, such as {"sampling": {}}.
        decode: Settings of the search that differ from the usual ones.
    """
    yaml = YAML()
    path = Path("params.yaml")
    content = yaml.load(path)
    text = {"license_and_citation": "own", "target": {"path": "inputs/mono.de"}}
    more = {"like": "toy", "source": "en", "target": "de", "files": {"train": {"mono": text}}}
    content["corpora"]["more"] = more
    content["synthetic"] = {"mono": {"part_of": "more", "system": "micro", "corpus": "toy", **how}}
    content["systems"]["micro"]["decode"].update(decode or {})
    yaml.dump(content, path)
    write_resolved(Path())


def run(work):
    """Do a part of the work of the stage back_translate in this process."""
    stage.back_translate(load_settings(), "mono", work)


def text_in_one_piece(monkeypatch):
    """Return the files of the synthetic text if it is translated in one piece."""
    with monkeypatch.context() as context:
        context.setattr(translated_pieces, "LINES_PER_PIECE", LINES)
        run(WholeText())
    return written_text()


def written_text():
    """Return the content of the files of the synthetic text, and remove them."""
    contents = {}
    for name in ("train.de", "train.en"):
        contents[name] = Path(OUTPUT, name).read_text()
    shutil.rmtree(OUTPUT)
    return contents


@pytest.fixture
def translated_lines(monkeypatch):
    """Return a list to which the numbers of the lines of each translated piece are added."""
    ranges = []
    translate_piece = stage.translate_piece

    def count_and_translate(translator, text, piece, *arguments):
        ranges.append((piece.start, piece.stop))
        return translate_piece(translator, text, piece, *arguments)

    monkeypatch.setattr(stage, "translate_piece", count_and_translate)
    return ranges


def test_a_piece_ends_where_a_block_of_lines_ends():
    """Lines are translated in blocks of 1,000, so the batches are those of a text without pieces.

    Otherwise, rounding could differ, and with it a translation.
    """
    assert translated_pieces.LINES_PER_PIECE % BLOCK_PAIRS == 0


@pytest.mark.parametrize(
    ("line_count", "expected_bounds"),
    [
        (0, []),
        (99, [(0, 99)]),
        (100, [(0, 100)]),
        (101, [(0, 100), (100, 101)]),
        (250, [(0, 100), (100, 200), (200, 250)]),
    ],
)
def test_pieces_cover_a_text_once(monkeypatch, line_count, expected_bounds):
    monkeypatch.setattr(translated_pieces, "LINES_PER_PIECE", LINES_PER_PIECE)

    pieces = translated_pieces.cut_into_pieces(line_count)

    assert [(piece.start, piece.stop) for piece in pieces] == expected_bounds
    assert [piece.number for piece in pieces] == list(range(1, len(pieces) + 1))


@pytest.mark.parametrize("how", [{}, {"noise": {}}], ids=["beam search", "noise"])
def test_a_text_in_pieces_has_the_bytes_of_a_text_in_one_piece(project, monkeypatch, how):
    set_params(how)
    expected = text_in_one_piece(monkeypatch)

    run(WholeText())

    assert written_text() == expected
    assert not (project / KEPT).exists()


@pytest.mark.parametrize(
    ("how", "shard_count"),
    [
        pytest.param({}, 3, id="beam search"),
        pytest.param({"sampling": {}}, 3, id="sampling"),
        pytest.param({"sampling": {}}, 7, id="more jobs than pieces"),
        pytest.param({"noise": {}}, 3, id="noise"),
    ],
)
def test_any_number_of_jobs_writes_the_same_bytes(project, how, shard_count):
    """The text has five pieces. The jobs run in any order."""
    set_params(how)
    run(WholeText())
    expected = written_text()

    run(TextToIndex())
    for shard in reversed(Shard.all(shard_count)):
        run(shard)
    run(AllShards(shard_count))

    assert written_text() == expected
    assert not (project / KEPT).exists()


@pytest.mark.usefixtures("project")
def test_a_job_translates_the_lines_of_its_pieces_alone(translated_lines):
    run(Shard(2, 3))

    assert translated_lines == [(100, 200), (400, 450)]


def test_sampled_translations_differ_between_pieces(project):
    """The lines of the second piece are those of the first one, and draw other random numbers."""
    set_params({"sampling": {}})
    lines = (project / "data/raw/more/given/mono/train.de").read_text().splitlines()
    repeated = lines[:LINES_PER_PIECE] * 2
    text = project / "data/raw/more/given/mono"
    (text / "train.de").write_text("".join(f"{line}\n" for line in repeated))
    (text / "train.en").write_text("\n" * len(repeated))

    run(WholeText())

    translations = written_text()["train.en"].splitlines()
    assert translations[:LINES_PER_PIECE] != translations[LINES_PER_PIECE:]


def finish_pieces(count):
    """Translate the first pieces of the text, as a process does that is then killed."""
    run(Shard(1, PIECES))
    for number in range(2, count + 1):
        run(Shard(number, PIECES))


@pytest.mark.usefixtures("project")
def test_finished_pieces_are_not_translated_again(monkeypatch, translated_lines, capsys):
    expected = text_in_one_piece(monkeypatch)
    finish_pieces(2)
    translated_lines.clear()

    run(WholeText())

    assert translated_lines == [(200, 300), (300, 400), (400, 450)]
    assert "mono: 2 of 5 pieces are translated already" in capsys.readouterr().err
    assert written_text() == expected


def change_code(project, monkeypatch):  # noqa: ARG001
    """Change the code of the stage."""
    monkeypatch.setattr(stage, "code_fingerprint", lambda script: f"other code of {script}")


def change_model(project, monkeypatch):  # noqa: ARG001
    """Change a file of the averaged model without a change of its weights."""
    file = project / "models/micro/toy/1/averaged/model.json"
    file.write_text(file.read_text() + "\n")


def change_text(project, monkeypatch):  # noqa: ARG001
    """Change a word of the last line of the text."""
    file = project / "data/raw/more/given/mono/train.de"
    file.write_text(file.read_text().removesuffix("\n") + " ba\n")


def change_search(project, monkeypatch):  # noqa: ARG001
    """Change a setting of the search."""
    set_params({}, decode={"max_len_b": 11})


def change_noise(project, monkeypatch):  # noqa: ARG001
    """Add noise to the translations."""
    set_params({"noise": {"drop": 0.2}})


@pytest.mark.parametrize(
    "change", [change_code, change_model, change_text, change_search, change_noise]
)
def test_pieces_of_another_model_text_or_setting_are_translated_again(
    project, monkeypatch, translated_lines, capsys, change
):
    finish_pieces(2)
    translated_lines.clear()

    change(project, monkeypatch)
    run(WholeText())

    assert len(translated_lines) == PIECES
    note = "mono: piece 1 was translated with another model, text, setting or version of the code"
    end = "It is translated again with 1 other piece of the same kind"
    errors = capsys.readouterr().err
    assert f"{note}. {end}" in errors
    assert errors.count("another model") == 1


def truncate(file):
    """Cut a file in half, as a full disk may do."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("damage", [truncate, os.remove], ids=["half a file", "no file"])
def test_a_damaged_piece_is_translated_again(
    project, monkeypatch, translated_lines, capsys, damage
):
    expected = text_in_one_piece(monkeypatch)
    finish_pieces(3)
    translated_lines.clear()

    damage(project / KEPT / "000002.txt")
    run(WholeText())

    assert translated_lines == [(100, 200), (300, 400), (400, 450)]
    assert f"piece 2 is damaged: {KEPT}/000002.txt is not the file" in capsys.readouterr().err
    assert written_text() == expected


def test_a_damaged_record_of_a_piece_makes_it_unfinished(project, translated_lines, capsys):
    finish_pieces(1)
    translated_lines.clear()

    truncate(project / KEPT / "000001.json")
    run(WholeText())

    assert len(translated_lines) == PIECES
    assert f"{KEPT}/000001.json is not a record of bleuprint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda shards: truncate(shards / "2-of-3/000002.txt"), "is damaged"),
        (lambda shards: shutil.rmtree(shards / "2-of-3"), "is missing"),
    ],
    ids=["damaged", "missing"],
)
def test_a_shard_that_cannot_be_used_is_refused(project, damage, problem):
    """The job that joins the shards has no GPU, and so does not translate."""
    for shard in Shard.all(3):
        run(shard)
    damage(project / SHARDS)

    with pytest.raises(UserError, match=f"mono: piece 2 of 5 {problem}") as raised:
        run(AllShards(3))

    assert f"translate them again: rm -r {SHARDS}" in str(raised.value)
    assert not (project / OUTPUT).exists()


def test_shards_of_another_model_are_refused(project, monkeypatch):
    for shard in Shard.all(2):
        run(shard)
    change_model(project, monkeypatch)

    with pytest.raises(UserError, match="piece 1 of 5 was translated with another model"):
        run(AllShards(2))


def test_a_text_that_changed_after_it_was_indexed_is_refused(project, monkeypatch):
    run(TextToIndex())
    change_text(project, monkeypatch)

    with pytest.raises(UserError, match=r"train\.de: this file has changed since it was indexed"):
        run(Shard(1, 2))
