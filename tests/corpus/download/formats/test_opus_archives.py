"""The format moses: archives with a text per language, such as the zip files of OPUS."""

import pytest

from archives import pack, zip_archive
from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.runtime.errors import UserError
from parallel_formats import PAIRS, published_files

GERMAN, ENGLISH = published_files("plain")


@pytest.fixture(autouse=True)
def inputs(tmp_path, monkeypatch):
    """The folder inputs/ of the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "inputs"
    folder.mkdir()
    return folder


def read_archive(path, languages=("de", "en"), **settings):
    """Return the pairs of an archive in inputs/."""
    text = Text("x", "moses", both=File(path=str(path), **settings))
    return list(read_text_pairs(text, languages))


def archive_error(path, languages=("de", "en")):
    """Return the error message, one line, with which an archive is refused."""
    with pytest.raises(UserError) as error:
        read_archive(path, languages)
    assert "\n" not in str(error.value)
    return str(error.value)


# The files of OPUS's NewsCommentary-v16, in their order.
OPUS_FILES = [
    ("README", b"NewsCommentary, from http://opus.nlpl.eu/\n"),
    ("LICENSE", b"see the web page\n"),
    ("News-Commentary.de-en.de", GERMAN),
    ("News-Commentary.de-en.en", ENGLISH),
    ("News-Commentary.de-en.ids", b"de/1.xml.gz\ten/1.xml.gz\t1\t1\n"),
]


@pytest.mark.parametrize("name", ["de-en.txt.zip", "a.tar", "a.tgz", "a.tar.xz"])
def test_both_texts_of_an_archive_are_found_by_their_languages(inputs, name):
    (inputs / name).write_bytes(pack(name, OPUS_FILES))

    swapped_pairs = [(target, source) for source, target in PAIRS]
    assert read_archive(f"inputs/{name}") == PAIRS
    assert read_archive(f"inputs/{name}", ("en", "de")) == swapped_pairs


@pytest.mark.parametrize(
    ("source_name", "target_name", "others"),
    [
        pytest.param("en.txt", "de.txt", [], id="languages alone"),
        pytest.param("x/a.eng", "x/a.deu", [], id="codes of three letters"),
        pytest.param("a.EN.txt", "a.DE.txt", [], id="capitals"),
        pytest.param("a.en_GB", "a.de", [], id="region"),
        pytest.param("a.en", "a.de", ["a.en_GB", "a.fr"], id="other languages"),
        pytest.param("1/a.en", "1/a.de", ["2/a.en", "b.de"], id="texts without a translation"),
        pytest.param("a.en", "a.de", ["__MACOSX/._a.en", "__MACOSX/._a.de"], id="made on a Mac"),
    ],
)
def test_texts_of_a_pair_have_one_name_up_to_the_language(inputs, source_name, target_name, others):
    files = [(name, b"") for name in others]
    files += [(source_name, ENGLISH), (target_name, GERMAN)]
    (inputs / "a.zip").write_bytes(zip_archive(files))

    assert read_archive("inputs/a.zip") == PAIRS


def test_an_archive_in_an_archive_may_contain_the_texts(inputs):
    content = pack("a.tgz", [("x/in.zip", zip_archive(OPUS_FILES))])
    (inputs / "a.tgz").write_bytes(content)

    assert read_archive("inputs/a.tgz", archive_member=("x/in.zip",)) == PAIRS


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(
            ["a.en", "a.fr", "README"],
            "no two files are named alike and end in de and en, such as x.de and x.en. The archive "
            "contains a.en, a.fr, README",
            id="another language",
        ),
        pytest.param([], "no two files are named alike", id="empty"),
        pytest.param(
            ["train.en", "train.de", "test.en", "test.de"],
            "2 pairs of files are in de and en: train.de, test.de, and their translations. Name "
            "two files, source and target, each with its archive_member",
            id="two pairs",
        ),
        pytest.param(["a.en_GB", "a.en_US", "a.de"], "no two files are", id="two regions"),
    ],
)
def test_an_archive_without_one_pair_of_files_is_refused(inputs, names, message):
    (inputs / "a.zip").write_bytes(zip_archive([(name, ENGLISH) for name in names]))

    assert archive_error("inputs/a.zip").startswith(f"inputs/a.zip: {message}")


def test_a_file_is_never_both_source_and_target(inputs):
    """The only Chinese text is in both zh-Hans and zh-Hant, but it is not its own translation."""
    (inputs / "a.zip").write_bytes(zip_archive([("a.zh", ENGLISH), ("a.en", ENGLISH)]))

    assert archive_error("inputs/a.zip", ("zh-Hans", "zh-Hant")) == (
        "inputs/a.zip: no two files are named alike and end in zh-Hans and zh-Hant, such as "
        "x.zh-Hans and x.zh-Hant. The archive contains a.zh, a.en. Name two files, source and "
        "target, each with its archive_member"
    )


def test_texts_of_different_length_are_named_with_their_archive(inputs):
    files = [("a.de", GERMAN), ("a.en", ENGLISH + b"One more.\n")]
    (inputs / "a.zip").write_bytes(zip_archive(files))

    assert archive_error("inputs/a.zip") == (
        "inputs/a.zip!a.de has 4 lines, but inputs/a.zip!a.en has 5, so they are not parallel"
    )


def test_a_file_that_is_not_an_archive_is_refused(inputs):
    (inputs / "a.txt").write_bytes(ENGLISH)
    (inputs / "a.zip").write_bytes(ENGLISH)

    assert archive_error("inputs/a.txt").startswith("inputs/a.txt: not an archive (.tar, ")
    assert archive_error("inputs/a.zip").startswith("inputs/a.zip: cannot be unpacked: ")
