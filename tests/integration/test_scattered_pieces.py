"""Snakemake translates a long synthetic text in pieces, which separate jobs can translate.

In these projects a piece has 50 lines in place of 100,000, so that a small text has several.
"""

import pytest

import micro

SYNTHETIC_TEXT = "data/raw/other/synthetic-forward"


@pytest.fixture(scope="module")
def translating_system(clean, tmp_path_factory):
    """Return a project in which tiny has been trained on corpus own. Not to be changed.

    Corpus other is extended by the synthetic text `forward`: tiny's translation of the source text
    of own.
    """
    project = clean.copy(tmp_path_factory.mktemp("system") / "project")
    sections = f"{micro.SECOND_CORPUS}{micro.SYNTHETIC}"
    project.edit("params.yaml", "systems:\n", f"{sections}systems:\n")
    project.snakemake("models/tiny/own/1/averaged")
    module = "src/bleuprint/serving/translated_pieces.py"
    project.edit(module, "LINES_PER_PIECE = 100_000", "LINES_PER_PIECE = 50")
    return project


def translate(translating_system, folder, *arguments):
    """Translate the synthetic text in a copy of the project.

    Args:
        translating_system: The project, in which the text is not translated.
        folder: The folder of the copy.
        *arguments: More arguments of Snakemake.

    Returns:
        The copy, and what Snakemake printed.
    """
    project = translating_system.copy(folder)
    # A process that has loaded bleuprint already would not know that a piece has 50 lines.
    project.warm = False
    output = project.snakemake(SYNTHETIC_TEXT, *arguments)
    return project, output


def text_of(project):
    """Return the content of each file of the synthetic text, by name."""
    texts = {}
    for path in (project.root / SYNTHETIC_TEXT).glob("train.*"):
        texts[path.name] = path.read_text()
    return texts


@pytest.mark.slow
def test_jobs_that_translate_pieces_of_a_text_write_the_bytes_of_one_job(
    translating_system, tmp_path
):
    """With `--set-scatter shards=3`, three jobs translate pieces, and a fourth one joins them."""
    by_one_job, _ = translate(translating_system, tmp_path / "one")

    by_three_jobs, output = translate(
        translating_system, tmp_path / "three", "--set-scatter", "shards=3"
    )

    for shard in (1, 2, 3):
        assert f"back_translate@other-forward, shard {shard}-of-3" in output
    text = text_of(by_one_job)
    assert set(text) == {"train.de", "train.en"}
    # With fewer lines, a job would have nothing to translate.
    assert text["train.en"].count("\n") > 3 * 50
    assert text_of(by_three_jobs) == text
    for folder in ("work/pieces", "work/shards"):
        unfinished_files = list(by_three_jobs.root.glob(f"{folder}/**/*.txt"))
        assert unfinished_files == []
    assert "back_translate@forward" in by_three_jobs.recorded_stages()
