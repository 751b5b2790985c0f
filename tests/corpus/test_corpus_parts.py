"""Parts of a corpus: their own stages, and how dedup and filter read them."""

import json
from dataclasses import replace

import pytest

from bleuprint.config import paths
from bleuprint.config.parts import part_filter_stats_file, part_folder
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.parts import (
    cleaning_of_part,
    corpus_for_part,
    download_part,
    filtering_of_part,
    run_step_on_part,
)
from bleuprint.corpus.steps.filter_stats import filter_stats_of_parts
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText
from bleuprint.rules import CHECKS, EDITS
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import TOKENIZE, file_contents, file_names, numbered_pairs, write_set
from params import PARAMS, read
from steps import run_sharded

LANGUAGES = ("de", "no")


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """The settings of a corpus with the training texts a and b, of which a is a part.

    The part a keeps pairs of at most 3 tokens, and the corpus those of at most 5.
    """
    monkeypatch.chdir(tmp_path)
    text = "{license_and_citation: own, source: {path: inputs/a.de}, target: {path: inputs/a.no}}"
    part = text.replace("}}", "}, filter: {length: {max: 3}}}")
    other_text = text.replace("inputs/a", "inputs/b")
    train = f"train: {{a: {part}, b: {other_text}}}"
    params = PARAMS.replace(f"train: {{a: {text}}}", train)
    params = params.replace("length: {min: 1, max: 100}", "length: {min: 1, max: 5}")
    return read(tmp_path, f"parts: {{a: {{}}}}\n{params}").corpora["own"]


def write_stage(stage, pairs, **held_out):
    """Write the output of the stage clean, dedup or filter for the corpus own."""
    path = paths.cleaned_folder("own") if stage == "clean" else paths.corpus_folder("own", stage)
    folder = TextFolder(path, *LANGUAGES)
    for name, set_pairs in {"train": pairs, **held_out}.items():
        write_set(folder, name, set_pairs)


def write_part(part, pairs):
    """Write the filtered text of a part of the corpus own."""
    write_set(TextFolder(part_folder("own", part, "filter"), *LANGUAGES), "train", pairs)


def pairs_of(stage):
    """Return the training pairs that a stage has written for the corpus own."""
    return list(TextFolder(paths.corpus_folder("own", stage), *LANGUAGES).pairs("train"))


def run_part(stage, create_step, corpus, part="a"):
    """Run a stage on the part a of the corpus own."""
    run_step_on_part(create_step, stage, "own", corpus, part, WholeText(), workers=1)


def test_a_part_is_downloaded_cleaned_and_filtered_by_its_own_rules(tmp_path, corpus):
    """Of four pairs, one has an empty side, and one has four tokens; the part allows three."""
    pairs = [
        Pair("ein", "en"),
        Pair("", "to"),
        Pair("e\u0301in", "tre"),
        Pair("a b c d", "e f g h"),
    ]
    write_set(TextFolder(tmp_path / "inputs", *LANGUAGES), "a", pairs)

    download_part("own", corpus, "a", Downloads(None, tmp_path / "store", None))
    run_part("clean", cleaning_of_part, corpus)
    run_part("filter", filtering_of_part, corpus)

    filtered = TextFolder(part_folder("own", "a", "filter"), *LANGUAGES)
    assert list(filtered.pairs("train")) == [Pair("ein", "en"), Pair("éin", "tre")]
    assert file_names(filtered.path) == ["train.de", "train.no"]
    counts = filter_stats_of_parts("own")["a"]
    assert counts["download"].pairs_out == 4
    assert counts["clean"].dropped == {"empty_side": 1}
    assert counts["filter"].dropped["length"] == 1


def test_the_stages_of_a_part_that_the_corpus_lacks_write_empty_outputs(corpus):
    """DVC has a stage for each corpus and part; an empty folder does not change DVC's hashes."""
    download_part("own", corpus, "x", Downloads(None, None, None))
    run_part("clean", cleaning_of_part, corpus, part="x")
    run_part("filter", filtering_of_part, corpus, part="x")

    for stage in ("download", "clean", "filter"):
        assert file_names(part_folder("own", "x", stage)) == []
        assert part_filter_stats_file("own", "x", stage).read_text() == "{}\n"
    assert filter_stats_of_parts("own") == {}


def test_the_shards_of_a_part_that_the_corpus_lacks_can_be_processed_again(corpus):
    """A user repeats a command, as for a part that the corpus has."""
    for _ in range(2):
        for work in (TextToIndex(), Shard(1, 2), Shard(2, 2), AllShards(2)):
            run_step_on_part(cleaning_of_part, "clean", "own", corpus, "x", work, workers=1)

    assert file_names(part_folder("own", "x", "clean")) == []


@pytest.mark.usefixtures("corpus")
def test_a_part_that_no_corpus_has_is_refused(tmp_path):
    """Someone runs a stage by hand, and mistypes the name of the part `a`."""
    settings = read(tmp_path, (tmp_path / "params.yaml").read_text())
    assert corpus_for_part(settings, "own", "a").files.parts().keys() == {"a"}

    with pytest.raises(UserError) as raised:
        corpus_for_part(settings, "own", "aa")

    assert str(raised.value).startswith("params.yaml: no corpus has a part 'aa'; there are: a")


def test_the_other_texts_of_a_corpus_are_prepared_together(corpus):
    assert list(corpus.files.prepared_together().train) == ["b"]


@pytest.mark.parametrize("shards", [1, 3])
def test_duplicates_are_removed_across_parts_and_other_texts(tmp_path, corpus, shards):
    """Parts come first, so that the copy in another text is dropped."""
    first, second, third = numbered_pairs("eins {}", "en {}", 3)
    write_stage("clean", [second, third], valid=[Pair("x", "y")])
    write_part("a", [first, second, first])

    step = Deduplication.for_corpus("own", corpus)
    run_sharded(step, tmp_path / "shards", shards)

    assert pairs_of("dedup") == [first, second, third]
    filtered = json.loads((paths.corpus_folder("own", "dedup") / "filtered.json").read_text())
    assert filtered == {"pairs": 2}


def test_the_order_of_parts_decides_which_copy_stays(tmp_path, corpus):
    """Both parts have the same source with another target; dedup compares sources."""
    both = replace(corpus.files.train["a"], filter=None)
    write_stage("clean", [], valid=[Pair("x", "y")])
    write_part("a", [Pair("eins", "en")])
    write_part("c", [Pair("eins", "ett")])
    kept_pairs = []
    for order in ("ac", "ca"):
        files = replace(corpus.files, train=dict.fromkeys(order, both))
        dedup = replace(corpus.dedup, sources=True)
        step = Deduplication.for_corpus("own", replace(corpus, files=files, dedup=dedup))
        run_sharded(step, tmp_path / "shards")
        kept_pairs += pairs_of("dedup")

    assert kept_pairs == [Pair("eins", "en"), Pair("eins", "ett")]


def test_a_held_out_sentence_is_found_in_the_form_that_a_part_gives_it(tmp_path, corpus):
    """The part decodes entities, the corpus does not; decontaminate is exact."""
    edits = (*corpus.clean, EDITS["entities"]())
    part = replace(corpus.files.train["a"], clean=edits)
    changed = replace(
        corpus,
        files=replace(corpus.files, train={**corpus.files.train, "a": part}),
        dedup=replace(corpus.dedup, decontaminate="exact"),
    )
    write_stage("clean", [Pair("drei", "tre")], valid=[Pair("eins &amp; zwei", "en")])
    write_part("a", [Pair("eins & zwei", "ett"), Pair("vier", "fire")])

    run_sharded(Deduplication.for_corpus("own", changed), tmp_path / "shards")

    assert pairs_of("dedup") == [Pair("vier", "fire"), Pair("drei", "tre")]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("count_in_parts", [0, 1, 1000, 1500, 6000])
def test_pairs_of_parts_are_not_filtered_again(tmp_path, corpus, count_in_parts, shards, workers):
    """Every other pair of 6,000 has 7 tokens; the corpus allows 5.

    A file says how many pairs at the beginning are from parts.
    """
    pairs = numbered_pairs("a {}", "b {}", 6000)
    pairs[::2] = numbered_pairs("a b c d e f {}", "a b c d e f {}", 3000)
    write_stage("dedup", pairs, valid=[Pair("x", "y")])
    (paths.corpus_folder("own", "dedup") / "filtered.json").write_text(
        json.dumps({"pairs": count_in_parts})
    )

    run_sharded(Filtering.for_corpus("own", corpus), tmp_path / "shards", shards, workers)

    other_pairs = pairs[count_in_parts:]
    assert pairs_of("filter") == pairs[:count_in_parts] + [
        pair for pair in other_pairs if len(pair.source) < 12
    ]


def test_word_translations_are_learned_without_the_pairs_of_parts(corpus):
    """The text has two pairs of a part and one other."""
    write_stage("dedup", numbered_pairs("a {}", "b {}", 3), valid=[Pair("x", "y")])
    (paths.corpus_folder("own", "dedup") / "filtered.json").write_text('{"pairs": 2}')
    checks = (CHECKS["word_alignment"](min=0.0),)

    step = Filtering.for_corpus("own", replace(corpus, filter=checks))

    assert list(step._words_to_learn_from()) == [(["a", "2"], ["b", "2"])]


def test_parts_with_the_rules_of_their_corpus_give_the_pairs_of_a_corpus_without_parts(
    tmp_path, corpus, monkeypatch
):
    """Without duplicates, it makes no difference that parts are filtered before dedup.

    The rules drop each third pair. Both corpora have the training texts a and b.
    """
    texts = numbered_pairs("a {}", "b {}", 60)
    texts[::3] = numbered_pairs("a b c d e f {}", "a b c d e f {}", 20)
    for number, name in enumerate("ab"):
        write_set(
            TextFolder(tmp_path / "inputs", *LANGUAGES), name, texts[number * 30 : number * 30 + 30]
        )
    plain_texts = {}
    separate_texts = {}
    for name, text in corpus.files.train.items():
        plain_texts[name] = replace(text, separate=None, filter=None)
        separate_texts[name] = replace(text, separate=True, filter=None)

    outputs = []
    for folder, train in (("plain", plain_texts), ("separate", separate_texts)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "inputs").symlink_to(tmp_path / "inputs")
        monkeypatch.chdir(tmp_path / folder)
        prepare(replace(corpus, files=replace(corpus.files, train=train)), tmp_path)
        outputs.append(pairs_of("filter"))

    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 40


def prepare(corpus, tmp_path):
    """Run the stages from download to filter on the corpus own in the current folder."""
    from bleuprint.corpus.clean import Cleaning
    from bleuprint.corpus.download.download import download_corpus

    downloads = Downloads(None, tmp_path / "store", None)
    for part in corpus.files.parts():
        download_part("own", corpus, part, downloads)
        run_part("clean", cleaning_of_part, corpus, part)
        run_part("filter", filtering_of_part, corpus, part)
    raw = TextFolder(paths.download_folder("own"), *LANGUAGES)
    filter_stats = paths.filter_stats_file("own", "download")
    download_corpus("own", corpus.files.prepared_together(), raw, filter_stats, downloads)
    for step_class in (Cleaning, Deduplication, Filtering):
        run_sharded(step_class.for_corpus("own", corpus), tmp_path / "shards")


def test_a_part_in_shards_has_the_same_bytes(tmp_path, corpus):
    """The part has 5,000 pairs, of which every second has too many tokens."""
    pairs = numbered_pairs("a {}", "b {}", 5000)
    pairs[::2] = numbered_pairs("a b c {}", "a b c {}", 2500)
    write_set(TextFolder(part_folder("own", "a", "clean"), *LANGUAGES), "train", pairs)
    step = filtering_of_part("own", corpus, "a")
    contents = []
    for shards in (1, 4):
        run_sharded(step, tmp_path / "shards", shards)
        contents.append(file_contents(step.output))

    assert contents[0] == contents[1]
    assert len(contents[0]["train.de"].splitlines()) == 2500
    assert corpus.only_text("a").tokenize == TOKENIZE
