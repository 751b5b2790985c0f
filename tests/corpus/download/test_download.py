"""The stage download joins the texts of a corpus, and takes or samples the pairs that it needs."""

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
from corpora import LINE_ENDS_ELSEWHERE, lines_to_text, sources_of

GERMAN = b"Guten Tag.\nBis bald!\n"
ENGLISH = b"Good day.\nSee you soon!\n"

pytestmark = pytest.mark.usefixtures("no_proxies")


def download(folder, files, sample=None):
    """Download a German-English corpus.

    Args:
        folder: The folder for all outputs.
        files: The texts of the corpus.
        sample: How many training pairs to draw, as `bleuprint inspect` does; None takes all.

    Returns:
        The downloaded text, and the filtering statistics by set.
    """
    raw = TextFolder(folder / "raw", "de", "en")
    source = Downloads(None, folder / "store", folder / "downloads.lock")
    download_corpus("c", files, raw, folder / "filter_stats.json", source, sample)
    return raw, json.loads((folder / "filter_stats.json").read_text())["sets"]


def training_files(**texts):
    """Return the files of a corpus with training texts only."""
    return Files(texts, {}, {})


def plain_text(source_url, target_url):
    """Return the settings of a text in two files of sentences."""
    return Text("x", source=File(url=source_url), target=File(url=target_url))


def test_the_texts_of_a_set_are_joined_in_the_order_of_the_settings(tmp_path, host):
    """Both sides of a text must be joined in the same order, or they would no longer be parallel.

    GERMAN and ENGLISH are two files of two sentences each.
    """
    german_url = host.put("/x.de", GERMAN)
    english_url = host.put("/x.en", ENGLISH)
    text = plain_text(german_url, english_url)
    swapped_text = plain_text(english_url, german_url)
    files = Files(
        train={"b": text, "a": swapped_text},
        valid={"v": text},
        tests={"t": {"p": swapped_text, "o": text}},
    )

    raw, _ = download(tmp_path, files)

    # The bytes of the source file and of the target file of each set.
    contents = {}
    for name in raw.set_names():
        source_path, target_path = raw.files(name)
        contents[name] = (source_path.read_bytes(), target_path.read_bytes())
    assert contents == {
        "train": (GERMAN + ENGLISH, ENGLISH + GERMAN),
        "valid": (GERMAN, ENGLISH),
        "test.t": (ENGLISH + GERMAN, GERMAN + ENGLISH),
    }


def test_the_statistics_count_each_text_of_a_set(tmp_path, host):
    """Each text has two sentence pairs; some sets consist of two texts."""
    text = plain_text(host.put("/x.de", GERMAN), host.put("/x.en", ENGLISH))
    files = Files(
        train={"b": text, "a": text},
        valid={"v": text},
        tests={"t": {"p": text, "o": text}},
    )

    _, sets = download(tmp_path, files)

    assert list(sets) == ["train.b", "train.a", "valid.v", "test.t.p", "test.t.o"]
    for counts in sets.values():
        assert counts["pairs_in"] == 2
        assert counts["pairs_out"] == 2


def test_a_file_of_several_texts_is_downloaded_and_locked_once(tmp_path, host):
    """The lock records the SHA-256 of each downloaded file by its URL."""
    german_url = host.put("/x.de", GERMAN)
    english_url = host.put("/x.en", ENGLISH)
    text = plain_text(german_url, english_url)

    files = Files(train={"b": text, "a": text}, valid={"v": text}, tests={"t": {"p": text}})

    download(tmp_path, files)

    requests_of_german_file = host.requests_for("/x.de")
    assert len(requests_of_german_file) == 1
    lock = json.loads((tmp_path / "downloads.lock").read_text())
    assert set(lock) == {german_url, english_url}


def download_numbers(tmp_path, host, pair_count, **amount):
    """Download a text whose sources are the numbers from 0, and whose targets are their doubles.

    Args:
        tmp_path: The folder for all outputs.
        host: The server.
        pair_count: The number of pairs of the text.
        **amount: How many of them to take: the settings pairs and pairs_seed.

    Returns:
        The sources that were taken, and the text's filtering statistics.
    """
    sources = lines_to_text(range(pair_count))
    targets = lines_to_text(range(0, 2 * pair_count, 2))
    source = File(url=host.put(f"/{pair_count}.source", sources.encode()))
    target = File(url=host.put(f"/{pair_count}.target", targets.encode()))
    text = Text("x", source=source, target=target, **amount)
    raw, sets = download(tmp_path, training_files(a=text))
    taken_sources = []
    for source, target in raw.pairs("train"):
        assert int(target) == 2 * int(source)
        taken_sources.append(int(source))
    counts = sets["train.a"]
    assert counts["pairs_in"] == pair_count
    assert counts["pairs_out"] == len(taken_sources)
    return taken_sources, counts


@pytest.mark.parametrize("pair_count", [2500, 1200])
def test_without_pairs_seed_the_first_pairs_of_a_text_are_taken(tmp_path, host, pair_count):
    taken, _ = download_numbers(tmp_path, host, pair_count, pairs=1200)

    assert taken == list(range(1200))


def test_pairs_that_are_not_taken_count_as_dropped(tmp_path, host):
    """The setting `pairs` limits how many pairs of a text are used."""
    _, counts = download_numbers(tmp_path, host, pair_count=2500, pairs=1200)

    assert counts["pairs_in"] == 2500
    assert counts["pairs_out"] == 1200
    assert counts["dropped"] == {"pairs": 2500 - 1200}


def test_if_all_pairs_are_taken_none_counts_as_dropped(tmp_path, host):
    """The sources of the text are the numbers from 0; the setting `pairs` asks for all three."""
    taken, counts = download_numbers(tmp_path, host, pair_count=3, pairs=3)

    assert taken == [0, 1, 2]
    assert counts["pairs_in"] == 3
    assert counts["pairs_out"] == 3
    assert counts["dropped"] == {}


def test_with_pairs_seed_a_random_sample_in_the_order_of_the_text_is_taken(tmp_path, host):
    """The sources of the text are the numbers 0 to 9: they show which pairs are taken."""
    sample = {"pair_count": 10, "pairs": 4, "pairs_seed": 0}

    taken, counts = download_numbers(tmp_path, host, **sample)
    taken_again, _ = download_numbers(tmp_path, host, **sample)

    assert len(set(taken)) == 4
    assert taken == sorted(taken)
    assert taken_again == taken
    assert counts["dropped"] == {"pairs": 10 - 4}


def test_with_pairs_seed_each_pair_is_taken_equally_often(tmp_path, host):
    """200 samples of 4 pairs are drawn from the numbers 0 to 9."""
    pair_counts = Counter()
    for seed in range(200):
        taken, _ = download_numbers(tmp_path, host, pair_count=10, pairs=4, pairs_seed=seed)
        assert len(set(taken)) == 4
        assert taken == sorted(taken)
        pair_counts.update(taken)

    assert pair_counts.total() == 200 * 4
    # A pair is in a sample with probability 4 / 10: a binomial distribution. A fair sampler stays
    # within four of its standard deviations.
    expected_count = 200 * 0.4
    standard_deviation = (200 * 0.4 * 0.6) ** 0.5
    for number in range(10):
        assert abs(pair_counts[number] - expected_count) < 4 * standard_deviation


def test_a_sample_of_all_pairs_is_the_text(tmp_path, host):
    taken, _ = download_numbers(tmp_path, host, 10, pairs=10, pairs_seed=1)

    assert taken == list(range(10))


# Two units with both languages, and one without German.
TMX = (
    b"<tmx><body>"
    b"<tu><tuv xml:lang='en'><seg>one</seg></tuv><tuv xml:lang='de-AT'><seg>eins</seg></tuv></tu>"
    b"<tu><tuv xml:lang='en'><seg>alone</seg></tuv></tu>"
    b"<tu><tuv xml:lang='en'><seg>two</seg></tuv><tuv xml:lang='de'><seg>zwei</seg></tuv></tu>"
    b"</body></tmx>"
)


def test_the_setting_pairs_skips_units_without_one_of_the_languages(tmp_path, host):
    """The TMX file has three units: "eins" with "one", a unit without German, "zwei" with "two"."""
    text = Text("x", "tmx", both=File(url=host.put("/x.tmx", TMX)), pairs=1)

    raw, sets = download(tmp_path, training_files(a=text))

    assert list(raw.pairs("train")) == [("eins", "one")]
    assert sets["train.a"]["dropped"] == {"one_language": 1, "pairs": 1}
    assert sets["train.a"]["pairs_in"] == 3
    assert sets["train.a"]["pairs_out"] == 1


def test_members_of_an_archive_are_read_in_their_formats(tmp_path, host):
    """One download gives two texts: a TMX file in an archive in an archive, and a table.

    The TMX file contains "eins" with "one", and "zwei" with "two".
    """
    inner_archive = tgz([("deep/c.tmx.gz", gzip.compress(TMX))])
    table = b"x\tb\ta\n"
    url = host.put("/all.tar", tar([("texts/inner.tgz", inner_archive), ("rows", table)]))
    tmx_file = File(url=url, archive_member=("texts/inner.tgz", "deep/c.tmx.gz"))
    table_file = File(url=url, archive_member=("rows",))
    files = training_files(
        m=Text("x", "tmx", both=tmx_file),
        s=Text("x", "tsv", both=table_file, columns=(3, 2)),  # "a" translates to "b".
    )

    raw, _ = download(tmp_path, files)

    assert list(raw.pairs("train")) == [("eins", "one"), ("zwei", "two"), ("a", "b")]
    assert len(host.requests_for("/all.tar")) == 1


@pytest.mark.parametrize(
    ("pairs_setting", "taken_count", "dropped"),
    [
        pytest.param(None, 2, {"1-0": 1}, id="all pairs"),
        pytest.param(1, 1, {"1-0": 1, "pairs": 1}, id="one pair"),
    ],
)
def test_the_statistics_count_a_pair_per_bead_of_aligned_documents(
    tmp_path, host, pairs_setting, taken_count, dropped
):
    """A bead is a group of sentences that translate each other, such as two by one: 2-1.

    The files contain a bead 2-1, a pair, and a German sentence without a translation: 1-0.
    """
    german = b"Guten Tag, Frau Schmidt.\nBis bald!\n\nEin Satz.\n\nNur hier.\n\n"
    english = b"Good day, Mrs Schmidt. See you soon!\n\nA sentence.\n\n\n"
    text = Text(
        "x",
        "documents",
        source=File(url=host.put("/x.de", german)),
        target=File(url=host.put("/x.en", english)),
        pairs=pairs_setting,
    )

    raw, sets = download(tmp_path, training_files(a=text))

    pairs = [
        ("Guten Tag, Frau Schmidt. Bis bald!", "Good day, Mrs Schmidt. See you soon!"),
        ("Ein Satz.", "A sentence."),
    ]
    assert list(raw.pairs("train")) == pairs[:taken_count]
    assert sets["train.a"]["changed"] == {"2-1": 1}
    assert sets["train.a"]["dropped"] == dropped
    assert sets["train.a"]["pairs_in"] == 3  # Three beads.
    assert sets["train.a"]["pairs_out"] == taken_count


def test_a_text_with_fewer_pairs_than_the_setting_is_refused_and_leaves_no_output(tmp_path, host):
    """GERMAN and ENGLISH have two lines each, but the setting `pairs` asks for three pairs."""
    german_url = host.put("/x.de", GERMAN)
    english_url = host.put("/x.en", ENGLISH)
    text = Text("x", source=File(url=german_url), target=File(url=english_url), pairs=3)

    with pytest.raises(UserError) as error:
        download(tmp_path, training_files(a=text))

    assert str(error.value) == (
        f"corpora.c.files.train.a.pairs is 3, but only 2 pairs can be read from "
        f"{german_url} and {english_url}. Lower pairs"
    )
    assert not (tmp_path / "raw").exists()
    assert not (tmp_path / "filter_stats.json").exists()


def test_sentences_keep_all_characters_except_byte_order_mark_and_carriage_returns(tmp_path, host):
    """Only a newline ends a line, although str.splitlines ends one at other characters, too."""
    lines = ""
    for character in LINE_ENDS_ELSEWHERE:
        lines += f"a{character}b {character}.\n{character}x\n"
    lines += "\x00\n\n last"
    byte_order_mark = b"\xef\xbb\xbf"
    windows_lines = byte_order_mark + lines.replace("\n", "\r\n").encode()
    text = plain_text(host.put("/x.de", windows_lines), host.put("/x.en", lines.encode()))

    raw, _ = download(tmp_path, training_files(a=text))

    # The last line gets a newline.
    expected = lines.encode() + b"\n"
    german_path, english_path = raw.files("train")
    assert german_path.read_bytes() == expected
    assert english_path.read_bytes() == expected


def numbers_text(host):
    """Return the settings of a text of ten pairs; both sides of each are a number from 0 to 9."""
    lines = lines_to_text(range(10)).encode()
    return plain_text(host.put("/x.de", lines), host.put("/x.en", lines))


def test_only_the_training_text_is_sampled(tmp_path, host):
    """`bleuprint inspect` samples the training text; held-out sets must stay complete."""
    text_of_10_pairs = numbers_text(host)
    files = Files(train={"a": text_of_10_pairs}, valid={"a": text_of_10_pairs}, tests={})

    raw, sets = download(tmp_path, files, Sample(pairs=4, seed=1))

    assert raw.count("train") == 4
    assert raw.count("valid") == 10
    assert sets["train"]["pairs_in"] == 10
    assert sets["train"]["dropped"] == {"sample": 10 - 4}


def test_each_pair_is_sampled_equally_often_and_comes_first_equally_often(tmp_path, host):
    """200 samples of 4 pairs are drawn from the pairs 0 to 9, which are numbers on both sides."""
    text = numbers_text(host)
    counts = Counter()
    first_counts = Counter()
    for seed in range(200):
        raw, sets = download(tmp_path, training_files(a=text), Sample(pairs=4, seed=seed))
        assert sets["train"]["pairs_in"] == 10
        assert sets["train"]["dropped"] == {"sample": 6}
        pairs = list(raw.pairs("train"))
        for source, target in pairs:
            assert source == target
        numbers = list(map(int, sources_of(pairs)))
        counts.update(set(numbers))
        first_counts[numbers[0]] += 1

    # A pair is in a sample with probability 0.4 and is its first with probability 0.1: binomial
    # distributions. A fair sampler stays within four of their standard deviations.
    expected_count = 200 * 0.4
    expected_first_count = 200 * 0.1
    for number in range(10):
        assert abs(counts[number] - expected_count) < 4 * (200 * 0.4 * 0.6) ** 0.5
        assert abs(first_counts[number] - expected_first_count) < 4 * (200 * 0.1 * 0.9) ** 0.5


def test_a_sample_as_large_as_three_texts_contains_all_their_pairs(tmp_path, host):
    """Each of the texts has ten pairs, the numbers from 0 to 9."""
    text = numbers_text(host)

    raw, _ = download(tmp_path, training_files(a=text, b=text, c=text), Sample(pairs=30, seed=1))

    counts = Counter(map(int, sources_of(raw.pairs("train"))))
    assert counts == dict.fromkeys(range(10), 3)  # Each number once per text.


def test_a_sample_is_drawn_from_all_training_texts_together(tmp_path, host):
    """Two texts of ten pairs each give one sample of 15 pairs, not a sample each."""
    text = numbers_text(host)

    raw, _ = download(tmp_path, training_files(a=text, b=text), Sample(pairs=15, seed=1))

    assert raw.count("train") == 15
