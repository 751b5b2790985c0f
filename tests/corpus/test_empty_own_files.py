"""Files of the user's that are of a known format, and contain nothing."""

from pathlib import Path

import pytest

from bleuprint.corpus.own_files import own_text
from bleuprint.runtime.errors import UserError

TMX = '<tmx version="1.4"><header srclang="de"/><body>{}</body></tmx>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.tmx", TMX.format(""), "inputs/mine.tmx: no unit has text"),
        ("mine.de-en.tmx", TMX.format("<tu/><tu/>"), "inputs/mine.de-en.tmx: no unit has text"),
        ("mine.tsv", "", "inputs/mine.tsv: an empty file"),
        ("mine.de-en.tsv", "", "inputs/mine.de-en.tsv: an empty file"),
    ],
)
def test_a_file_without_text_is_refused(tmp_path, monkeypatch, name, content, message):
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    path = Path("inputs", name)
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(UserError) as raised:
        own_text([path], None, None)
    assert str(raised.value) == message
