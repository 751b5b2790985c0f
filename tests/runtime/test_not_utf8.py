"""Files in other encodings: every reader names the place and a command that converts the file."""

import re
import shutil
import subprocess
from io import BytesIO

import pytest

from bleuprint.corpus.download.formats import lines
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.line_stream import read_lines_together
from bleuprint.runtime.schema import load_yaml
from bleuprint.text import parallel

TEXT = "x: eins\ny: so „schön“, süß\n"
READERS = {
    "download": lambda path: list(lines.read_lines(path.open("rb"), str(path))),
    "text": lambda path: list(parallel.read_lines(path)),
    "stream": lambda path: list(read_lines_together(BytesIO(path.read_bytes()), str(path), 9)),
    "settings": load_yaml,
}


@pytest.mark.parametrize(("encoding", "line"), [("utf-16", 1), ("latin-1", 2), ("cp1252", 2)])
@pytest.mark.parametrize("reader", READERS)
def test_the_command_of_the_message_converts_the_file(reader, encoding, line, tmp_path):
    if shutil.which("iconv") is None:
        pytest.skip("no iconv")
    text = TEXT if encoding != "latin-1" else re.sub("[„“]", '"', TEXT)
    path = tmp_path / "text"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(UserError) as error:
        READERS[reader](path)
    message = str(error.value)
    assert message.startswith(f"{path}:{line}: byte ")
    command = re.search("iconv .* OLD > NEW$", message)[0]
    command = command.replace("OLD", str(path)).replace("NEW", str(tmp_path / "new"))
    subprocess.run(command, shell=True, check=True)
    assert (tmp_path / "new").read_text(encoding="utf-8") == text
    READERS[reader](tmp_path / "new")
