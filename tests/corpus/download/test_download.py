import gzip
import json
from collections import Counter

import pytest

from archives import tar, tgz
from bleuprint.config.corpus_files import File, Files, Text
from bleuprint.corpus.download.download import Sample, download_corpus
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import LINE_ENDS_ELSEWHERE

GERMAN = b"Guten Tag.\nBis bald!\n"
ENGLISH = b"Good day.\nSee you soon!\n"

pytestmark = pytest.mark.usefixtures("no_proxies")


def download(folder, files, sample=None):
    raw = TextFolder(folder / "raw", "de", "en")
    place = Downloads(None, folder / "store", folder / "downloads.lock")
    download_corpus("c", files, raw, folder / "filter_stats.json", place, sample)
    return raw, json.loads((folder / "filter_stats.json").read_text())["sets"]


def alone(text):
    return Files({"a": text}, {}, {})


def plain(source, target, **of_source):
    return Text("x", source=File(url=source, **of_source), target=File(url=target))


def refused(tmp_path, text):
    """The message; and nothing is left that looks finished."""
    with pytest.raises(UserError) as error:
        download(tmp_path, alone(text))
    assert not (tmp_path / "raw").exists() and not (tmp_path / "filter_stats.json").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_parts_are_joined_in_the_order_of_the_settings_and_counted_apart(tmp_path, host):
    german, english = host.put("/x.de", GERMAN), host.put("/x.en", ENGLISH)
    b, a = plain(german, english), plain(english, german)
    raw, sets = download(tmp_path, Files({"b": b, "a": a}, {"v": b}, {"t": {"p": a, "o": b}}))
    assert list(sets) == ["train.b", "train.a", "valid.v", "test.t.p", "test.t.o"]
    assert all(counts["pairs_in"] == counts["pairs_out"] == 2 for counts in sets.values())
    contents = {name: [path.read_bytes() for path in raw.files(name)] for name in raw.set_names()}
    assert contents == {
        "train": [GERMAN + ENGLISH, ENGLISH + GERMAN],
        "valid": [GERMAN, ENGLISH],
        "test.t": [ENGLISH + GERMAN, GERMAN + ENGLISH],
    }
    assert len(host.asked("/x.de")) == 1
    assert set(json.loads((tmp_path / "downloads.lock").read_text())) == {german, english}


def numbered(host, count):
    """A text whose source lines are their numbers, and its target lines their doubles."""
    sides = [range(count), range(0, 2 * count, 2)]
    pages = ["".join(f"{number}\n" for number in side).encode() for side in sides]
    return [File(url=host.put(f"/{count}.{i}", page)) for i, page in enumerate(pages)]


def taken(tmp_path, host, count, **amount):
    source, target = numbered(host, count)
    raw, sets = download(tmp_path, alone(Text("x", source=source, target=target, **amount)))
    pairs = [(int(source), int(target)) for source, target in raw.pairs("train")]
    assert all(target == 2 * source for source, target in pairs)
    counts = sets["train.a"]
    assert (counts["pairs_in"], counts["pairs_out"]) == (count, len(pairs))
    assert counts["dropped"] == ({"pairs": count - len(pairs)} if len(pairs) < count else {})
    return [source for source, _ in pairs]


def test_the_first_pairs_of_a_text_are_taken(tmp_path, host):
    assert taken(tmp_path, host, 2500, pairs=1200) == list(range(1200))
    assert taken(tmp_path, host, 3, pairs=3) == [0, 1, 2]


def test_pairs_are_drawn_by_seed_each_as_often_as_the_others(tmp_path, host):
    draws = [taken(tmp_path, host, 10, pairs=4, pairs_seed=seed) for seed in range(200)]
    assert all(len(set(draw)) == 4 and draw == sorted(draw) for draw in draws)
    assert draws[0] == taken(tmp_path, host, 10, pairs=4, pairs_seed=0)
    often = [sum(number in draw for draw in draws) for number in range(10)]
    assert sum(often) == 800
    assert all(abs(count - 80) < 4 * (200 * 0.4 * 0.6) ** 0.5 for count in often)
    assert taken(tmp_path, host, 10, pairs=10, pairs_seed=1) == list(range(10))


TMX = (
    b"<tmx><body>"
    b"<tu><tuv xml:lang='en'><seg>one</seg></tuv><tuv xml:lang='de-AT'><seg>eins</seg></tuv></tu>"
    b"<tu><tuv xml:lang='en'><seg>alone</seg></tuv></tu>"
    b"<tu><tuv xml:lang='en'><seg>two</seg></tuv><tuv xml:lang='de'><seg>zwei</seg></tuv></tu>"
    b"</body></tmx>"
)


def test_pairs_are_taken_of_those_that_the_format_leaves(tmp_path, host):
    text = Text("x", "tmx", both=File(url=host.put("/x.tmx", TMX)), pairs=1)
    raw, sets = download(tmp_path, alone(text))
    assert list(raw.pairs("train")) == [("eins", "one")]
    assert sets["train.a"]["dropped"] == {"one_language": 1, "pairs": 1}
    assert (sets["train.a"]["pairs_in"], sets["train.a"]["pairs_out"]) == (3, 1)


def test_members_of_archives_are_read_in_their_formats(tmp_path, host):
    inner = tgz([("deep/c.tmx.gz", gzip.compress(TMX))])
    rows = b"x\tb\ta\n"
    url = host.put("/all.tar", tar([("texts/inner.tgz", inner), ("rows", rows)]))
    tmx = File(url=url, archive_member=("texts/inner.tgz", "deep/c.tmx.gz"))
    tsv = File(url=url, archive_member=("rows",))
    parts = {
        "m": Text("x", "tmx", both=tmx),
        "s": Text("x", "tsv", both=tsv, columns=(3, 2)),
    }
    raw, _ = download(tmp_path, Files(parts, {}, {}))
    assert list(raw.pairs("train")) == [("eins", "one"), ("zwei", "two"), ("a", "b")]
    assert len(host.asked("/all.tar")) == 1


@pytest.mark.parametrize("wanted", [None, 1])
def test_the_filter_stats_counts_a_pair_for_each_bead_of_documents(tmp_path, host, wanted):
    german = b"Guten Tag, Frau Schmidt.\nBis bald!\n\nEin Satz.\n\nNur hier.\n\n"
    english = b"Good day, Mrs Schmidt. See you soon!\n\nA sentence.\n\n\n"
    files = [File(url=host.put("/x.de", german)), File(url=host.put("/x.en", english))]
    text = Text("x", "documents", source=files[0], target=files[1], pairs=wanted)
    raw, sets = download(tmp_path, alone(text))
    pairs = [
        ("Guten Tag, Frau Schmidt. Bis bald!", "Good day, Mrs Schmidt. See you soon!"),
        ("Ein Satz.", "A sentence."),
    ]
    assert list(raw.pairs("train")) == pairs[:wanted]
    counts = sets["train.a"]
    assert counts["changed"] == {"2-1": 1}
    assert counts["dropped"] == ({"1-0": 1, "pairs": 1} if wanted else {"1-0": 1})
    assert (counts["pairs_in"], counts["pairs_out"]) == (3, wanted or 2)


def test_more_pairs_than_a_text_has_are_refused(tmp_path, host):
    german, english = host.put("/x.de", GERMAN), host.put("/x.en", ENGLISH)
    text = Text("x", source=File(url=german), target=File(url=english), pairs=3)
    message = f"corpora.c.files.train.a.pairs is 3, but {german} and {english} have 2 pairs"
    assert refused(tmp_path, text) == message


def test_sentences_stay_as_they_are_published(tmp_path, host):
    odd = "".join(f"a{c}b {c}.\n{c}x\n" for c in LINE_ENDS_ELSEWHERE) + "\x00\n\n last"
    with_mark = b"\xef\xbb\xbf" + odd.replace("\n", "\r\n").encode()
    text = plain(host.put("/x.de", with_mark), host.put("/x.en", odd.encode()))
    raw, _ = download(tmp_path, alone(text))
    lines = [path.read_bytes().split(b"\n") for path in raw.files("train")]
    assert lines[1] == [*odd.encode().split(b"\n"), b""]
    assert lines[0] == lines[1]


def test_a_sample_of_a_training_text_is_random_and_in_random_order(tmp_path, host):
    lines = [f"{number}\n".encode() for number in range(10)]
    text = plain(host.put("/x.de", b"".join(lines)), host.put("/x.en", b"".join(lines)))
    files = Files({"a": text}, {"a": text}, {})
    draws = []
    for seed in range(200):
        raw, sets = download(tmp_path, files, sample=Sample(4, seed))
        assert (sets["train"]["pairs_in"], sets["train"]["dropped"]) == (10, {"sample": 6})
        assert raw.count("valid") == 10
        pairs = list(raw.pairs("train"))
        assert all(source == target for source, target in pairs)
        draws.append([int(source) for source, _ in pairs])
    raw, _ = download(tmp_path, Files({"a": text, "b": text, "c": text}, {}, {}), Sample(30, 1))
    assert Counter(int(source) for source, _ in raw.pairs("train")) == dict.fromkeys(range(10), 3)
    raw, _ = download(tmp_path, Files({"a": text, "b": text}, {}, {}), Sample(15, 1))
    assert raw.count("train") == 15  # of both together
    # of 200 draws, each number is in 80 and first in 20, give or take four standard deviations
    for number in range(10):
        assert abs(sum(number in draw for draw in draws) - 80) < 4 * (200 * 0.4 * 0.6) ** 0.5
        assert abs(sum(number == draw[0] for draw in draws) - 20) < 4 * (200 * 0.1 * 0.9) ** 0.5
