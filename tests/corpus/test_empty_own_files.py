"""Files of the user's that have a known format, but contain nothing."""

from pathlib import Path

import pytest

from bleuprint.corpus.own_files import own_text
from bleuprint.runtime.errors import UserError


def tmx(body):
    """Return a TMX file of German text with the given translation units."""
    return f'<tmx version="1.4"><header srclang="de"/><body>{body}</body></tmx>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param(
            "mine.tmx",
            tmx(""),
            "inputs/mine.tmx: the translation memory contains no text",
            id="TMX without units",
        ),
        pytest.param(
            "mine.de-en.tmx",
            tmx("<tu/><tu/>"),
            "inputs/mine.de-en.tmx: the translation memory contains no text",
            id="TMX with empty units",
        ),
        pytest.param(
            "mine.tsv",
            "",
            "inputs/mine.tsv: the file is empty",
            id="TSV without languages",
        ),
        pytest.param(
            "mine.de-en.tsv",
            "",
            "inputs/mine.de-en.tsv: the file is empty",
            id="TSV with languages in its name",
        ),
    ],
)
def test_a_file_without_text_is_refused(tmp_path, monkeypatch, name, content, message):
    """`bleuprint new-corpus` reads files in inputs/; an empty one is usually a failed export."""
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    path = Path("inputs", name)
    path.parent.mkdir()
    path.write_text(content)

    with pytest.raises(UserError) as raised:
        own_text([path], None, None)

    assert str(raised.value) == message
