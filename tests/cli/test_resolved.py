"""`bleuprint check --resolved`: values after inheritance and defaults, each with its place."""

from pathlib import Path

import pytest

from bleuprint.cli.pipeline import resolved_lines as lines
from bleuprint.runtime.errors import UserError
from recipes import PATHS
from root import ROOT

ON_ONE = "    corpora: {phrasebook-en-de: {}, phrasebook-en-fr: {train: {label_smoothing: 0.2}}}\n"


@pytest.fixture
def found(tmp_path, monkeypatch):
    """A function that writes params.yaml and returns the lines of an entry by key."""
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    monkeypatch.chdir(tmp_path)

    def found(text, name):
        Path("params.yaml").write_text(text, encoding="utf-8")
        return dict(line.split(": ", 1) for line in lines(name))

    return found


def test_each_value_has_the_file_line_and_key_that_it_comes_from(found):
    text = (ROOT / "params.yaml").read_text(encoding="utf-8") + ON_ONE
    found = found(text, "small")

    def at(part, key):
        (number,) = (n for n, line in enumerate(text.split("\n"), 1) if part in line)
        return f"# params.yaml:{number}: systems.{key}"

    assert found["model.heads"] == f"4  {at('heads:', 'tiny.model.heads')}"
    assert found["model.d_ff"] == f"512  {at('d_ff: 512', 'small.model.d_ff')}"
    assert found["decode.beam"] == "4  # default"
    assert found["decode.allow_unk"] == "true  # default"
    key = "small.corpora.phrasebook-en-fr.train.label_smoothing"
    assert (
        found["phrasebook-en-fr.train.label_smoothing"] == f"0.2  {at('label_smoothing: 0.2', key)}"
    )
    assert found["phrasebook-en-de.train.label_smoothing"] == "0.1  # default"


def test_a_corpus_has_the_lines_of_its_description(found):
    found = found(PATHS["table2"].read_text(encoding="utf-8"), "wmt14-en-fr")
    url, place = found["files.train.un.source.url"].split("  # ")
    file, number, key = place.split(":", 2)
    assert (file, key) == ("corpora/wmt14-en-fr.yaml", " files.train.un.en.url")
    assert Path(file).read_text("utf-8").split("\n")[int(number) - 1].strip() == f"url: {url}"
    assert found["filter.ratio.max"].endswith(": corpora.wmt14-en-fr.filter.ratio.max")
    assert found["filter.length.min"] == "1  # default"


def test_a_name_that_is_neither_is_refused(found):
    said = r"no system or corpus 'smal'; there are: tiny, small, ph.*; did you mean 'small'\?"
    with pytest.raises(UserError, match=said):
        found((ROOT / "params.yaml").read_text(encoding="utf-8"), "smal")
