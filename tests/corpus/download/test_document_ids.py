"""The documents of test sets, from the files to the description that scoring reads."""

from pathlib import Path

import result_trees as trees
from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.config.paths import corpus_folder, download_folder
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.test_sets import read_set_description
from bleuprint.text.parallel import TextFolder
from scoring import SEPARATORS


def sgml(documents, root):
    docs = "".join(
        f'<doc docid="{id}">{"".join(f"<seg id={n}>{id} {n}</seg>" for n in range(lines))}</doc>\n'
        for id, lines in documents.items()
    )
    return f"<{root}>\n{docs}</{root}>\n"


def text(folder, name, documents):
    """A text in the folder inputs/ of the working directory."""
    files = []
    for side in ("srcset", "refset"):
        path = Path("inputs") / f"{name}.{side}"
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(sgml(documents, side).encode())
        files.append(File(path=str(path)))
    return Text("x", "sgml", source=files[0], target=files[1])


def download(root, tests, monkeypatch):
    monkeypatch.chdir(root)
    raw = TextFolder(download_folder("c-en-de", root), "en", "de")
    train = text(root, "train", {"t": 2})
    source = Downloads(None, root / "store", root / "downloads.lock")
    download_corpus("c", Files({"a": train}, {"a": train}, tests), raw, root / "l.json", source)
    return raw.path


def test_ids_are_beside_the_test_sets_that_say_them(tmp_path, monkeypatch, capsys):
    odd = "".join(SEPARATORS) + "\0"
    one, two = (
        text(tmp_path, name, ids) for name, ids in (("1", {"a": 2, odd: 1}), ("2", {"a": 1}))
    )
    unsaid = text(tmp_path, "3", {"": 2})
    tests = {"single": {"one": one}, "both": {"one": one, "two": two}}
    tests |= {"part": {"one": one, "no": unsaid}, "none": {"no": unsaid}}
    raw = download(tmp_path, tests, monkeypatch)
    # no text of a corpus without documents changes, and nothing is written for train and valid
    assert sorted(path.name for path in raw.glob("*.documents")) == [
        "test.both.documents",
        "test.single.documents",
    ]
    assert (raw / "test.single.documents").read_bytes() == f"a\na\n{odd}\n".encode()
    assert (raw / "test.both.documents").read_bytes().decode() == (
        f"one/a\none/a\none/{odd}\ntwo/a\n"
    )
    assert "test.part: 2 of 5 lines are of no document: none is used" in capsys.readouterr().err
    assert TextFolder(raw, "en", "de").set_names() == [
        "train",
        "valid",
        *("test.both", "test.none", "test.part", "test.single"),
    ]


def test_a_description_has_the_documents_if_they_are_known(tmp_path, monkeypatch):
    settings = trees.settings_in(tmp_path, corpora={"c-en-de": ("said", "unsaid")})
    raw = download(
        tmp_path, {"said": {"p": text(tmp_path, "s", {"a": 2, "b\n c": 1})}}, monkeypatch
    )
    split, tokens, tests = (
        corpus_folder("c-en-de", s, tmp_path) for s in ("split", "tokens", "test_stats")
    )
    for test in ("said", "unsaid"):
        for language in ("en", "de"):
            lines = (raw / f"test.said.{language}").read_text("utf-8").split("\n")[:-1]
            for place in (split, tokens):
                trees.write_lines(place / f"test.{test}.{language}", lines)
                trees.write_lines(place / f"train.{language}", lines)
    trees.describe(tmp_path, settings, "c-en-de")
    assert read_set_description(tests, "said").documents == ["a", "a", "b  c"]
    assert read_set_description(tests, "unsaid").documents is None
