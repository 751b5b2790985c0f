"""Several directions in one corpus: sampled, tagged, joined, and each scored as its own pair."""

import runpy
import shutil
import sys
from collections import Counter
from contextlib import chdir
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import systems
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import Run, corpus_folder, filter_stats_file, shards_folder
from bleuprint.config.synthetic import check_synthetic_texts
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Downloads
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.inspect import inspect_corpus
from bleuprint.corpus.steps.directions import join_tokens, sampled_pairs
from bleuprint.corpus.steps.filter_stats import SetCounts, filter_stats_by_stage, read_filter_stats
from bleuprint.corpus.steps.shard import AllShards, Shard, WholeText
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.corpus.test_sets import describe_test_sets, read_set_description
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.translate import best_translations
from bleuprint.decoding.translation_record import TRANSLATION, TranslationRecord
from bleuprint.model.description import Averaged
from bleuprint.model.transformer import Transformer
from bleuprint.rules import CHECKS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.runtime.schema import SettingError
from bleuprint.scoring.bleu import bleu_metric
from bleuprint.scoring.metric import TranslatedSet
from bleuprint.scoring.score import score_run, score_test_set
from bleuprint.serving.translator import Translator
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import tokenizer_for
from params import PARAMS, write_resolved
from root import ROOT
from steps import DATA_STAGES

# Sentences by language; those of 20 to 23 are a test set of the zero-shot direction alone.
TEXTS = {
    "en": [f"It's {n:05b} o'clock, isn't it?" for n in range(24)],
    "de": [f"Es ist {n:05b} Uhr, nicht wahr?" for n in range(24)],
    "fr": [f"C'est l'heure {n:05b}, n'est-ce pas ?" for n in range(24)],
}
TRAINED = {"en-de": 14, "de-en": 14, "en-fr": 4}
DIRECTIONS = [*TRAINED, "de-fr"]
SETS = {"train": (0, 14), "valid": (14, 16), "test": (16, 20), "unseen": (20, 24)}


def files(direction):
    """The files of a direction in params.yaml; of French, 4 pairs to train on."""
    source, target = direction.split("-")

    def text(name, more=""):
        sides = (
            f"source: {{path: inputs/{name}.{source}}}, target: {{path: inputs/{name}.{target}}}"
        )
        return f"{{a: {{license_and_citation: own, {sides}{more}}}}}"

    tests = text("test" if direction in TRAINED else "unseen")
    train = text("train", f", pairs: {TRAINED.get(direction, 14)}")
    return f"train: {train}, valid: {text('valid')}, tests: {{news: {tests}}}"


def params(temperature=2):
    entries = (
        f"      {each}: {{{'zero_shot: true, ' * (each == 'de-fr')}files: {{{files(each)}}}}}\n"
        for each in DIRECTIONS
    )
    many = (
        "  many:\n    directions:\n" + "".join(entries) + "    split: {temperature: "
        f"{temperature}}}\n    vocabulary: {{bpe: {{num_merges: 10}}}}\n"
        '    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}\nsystems:\n'
    )
    return PARAMS.replace("systems:\n", many)


def run(script, root):
    """A stage's script, in this process."""
    with chdir(root), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{script}.py", "many"])
        runpy.run_path(str(ROOT / "stages" / f"{script}.py"), run_name="stage")["main"]()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The project after all stages of data."""
    root = tmp_path_factory.mktemp("many")
    (root / "inputs").mkdir()
    for language, lines in TEXTS.items():
        for name, (start, stop) in SETS.items():
            text = "".join(f"{line}\n" for line in lines[start:stop])
            (root / "inputs" / f"{name}.{language}").write_text(text)
    # a sentence of the test set of another direction
    leak = (root / "inputs" / "train.de").read_text().replace(TEXTS["de"][3], TEXTS["de"][21])
    (root / "inputs" / "train.de").write_text(leak)
    (root / "params.yaml").write_text(params())
    write_resolved(root)
    for script in DATA_STAGES:
        run(script, root)
        for output in (root / "data").glob("*/many"):
            (output / ".snakemake_timestamp").touch()
    return root


@pytest.fixture
def corpus(root):
    return load_resolved_settings(root).corpus("many")


@pytest.mark.parametrize("temperature", [1, 2, 5, 100])
def test_shares_are_those_of_the_formula(temperature):
    pairs = {"a": 100_000, "b": 10_000, "c": 10}
    taken = sampled_pairs(pairs, temperature)
    weights = {name: n ** (1 / temperature) for name, n in pairs.items()}
    for name, n in taken.items():
        assert n / sum(taken.values()) == pytest.approx(
            weights[name] / sum(weights.values()), abs=1e-4
        )
    assert taken["a"] == pairs["a"]
    assert taken["b"] >= pairs["b"]
    assert (taken == pairs) == (temperature == 1)


def test_every_training_pair_is_one_of_its_direction_with_its_tag(root):
    tokens = TextFolder(root / "data/tokens/many", "src", "tgt")
    found = {each: Counter() for each in TRAINED}
    for source, target in tokens.pairs("train"):
        tag, _, text = source.partition(" ")
        # languages by their first words
        languages = {"It": "en", "Es": "de", "C'": "fr"}
        sides = languages[text[:2]], languages[target[:2]]
        assert tag == f"<2{sides[1]}>"
        known = [tokenizer_for(*pair) for pair in zip(sides, [tokenize(root)] * 2, strict=True)]
        found["-".join(sides)][
            known[0].detokenize(text.split()), known[1].detokenize(target.split())
        ] += 1
    # one pair of German has a sentence of a test set, of 14 are 13 left
    wanted = {"en-de": 13, "de-en": 13, "en-fr": round(13 * (4 / 13) ** 0.5)}
    assert {each: counts.total() for each, counts in found.items()} == wanted
    for direction, counts in found.items():
        source, target = direction.split("-")
        left = [n for n in range(TRAINED[direction]) if n != 3 or "de" not in direction]
        assert set(counts) == {(TEXTS[source][n], TEXTS[target][n]) for n in left}
        assert max(counts.values()) - min(counts.values()) <= 1


def tokenize(root):
    return load_resolved_settings(root).corpus("many").tokenize


def test_a_zero_shot_direction_has_its_test_set_alone(root):
    text = TextFolder(root / "data/tokens/many", "src", "tgt")
    assert text.set_names() == [
        *("train", "valid"),
        *(f"test.{each}-news" for each in sorted(DIRECTIONS)),
    ]
    assert text.count("valid") == 2 * len(TRAINED)
    assert next(iter(text.pairs("test.de-fr-news"))).source.startswith("<2fr> Es ist 10100 Uhr")
    scored = TextFolder(root / "data/split/many", "src", "tgt")
    assert [pair.target for pair in scored.pairs("test.de-fr-news")] == TEXTS["fr"][20:]


def test_filter_stats_are_joined(root):
    with chdir(root):
        all_filter_stats = filter_stats_by_stage("many")
    assert all_filter_stats["download"]["train.en-fr-a"].pairs_in == 14
    assert all_filter_stats["download"]["test.de-fr-news.a"].pairs_out == 4
    assert all_filter_stats["clean"]["train"].pairs_out == 14 + 14 + 4
    assert all_filter_stats["dedup"]["train"].dropped["target_held_out"] == 1
    assert all_filter_stats["dedup"]["train"].dropped["source_held_out"] == 1
    pairs = BinaryCorpus(root / "data/binary/many").sets["train"].pairs
    split = all_filter_stats["split"]["train"]
    assert split.pairs_out == all_filter_stats["binarize"]["train"].pairs_out == pairs
    assert split.pairs_in == all_filter_stats["filter"]["train"].pairs_out
    assert split.changed == {"copies": pairs - split.pairs_in} and pairs > split.pairs_in
    assert not [
        path for path in filter_stats_file("many", "clean", root).parent.iterdir() if path.is_dir()
    ]


def test_translations_are_in_the_language_of_the_tag(root):
    corpus = BinaryCorpus(root / "data/binary/many")
    for name in (name for name in corpus.sets if name.startswith("test.")):
        target = name.split("-")[1]
        sides = [corpus.side(name, each) for each in ("src", "tgt")]
        lines = [corpus.translation(sides[0][i], sides[1][i]) for i in range(4)]
        assert lines == lines_of(name.removeprefix("test."), target)
        words = corpus.segmentation("tgt").decode(sides[1][0])
        assert lines[0] == tokenizer_for(target, tokenize(root)).detokenize(words)


def untrained(root, direction, **settings):
    """A translator with random weights, of a direction."""
    with chdir(root):
        pair = load_resolved_settings().corpus("many").language_pair("many", direction)
        binary = BinaryCorpus(root / "data/binary/many")
        sizes = [len(binary.segmentation(side).vocabulary) for side in ("src", "tgt")]
        torch.manual_seed(1)
        model = Transformer(systems.model(tie_embeddings="none"), *sizes).eval()
        decode = systems.decode(**settings)
        return Translator(model, binary, pair.clean, decode, None, pair.languages)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_sentence_is_read_by_the_rules_of_its_language(root, direction):
    """The translator gives the model what the pipeline binarized."""
    translator = untrained(root, direction)
    name = f"test.{direction}-news"
    sentences = BinaryCorpus(root / "data/binary/many").side(name, "src")
    lines = lines_of(f"{direction}-news", direction.split("-")[0])
    tokens = TextFolder(root / "data/tokens/many", "src", "tgt").pairs(name)
    for i, (translated, pair) in enumerate(zip(translator(lines), tokens, strict=True)):
        assert translated.pieces[0].source == sentences[i].tolist()
        assert translator.alignment(translated).source == pair.source.split()[1:]


class Side(list):
    """Sources of a set."""

    @property
    def lengths(self):
        return np.array([*map(len, self)])


def test_each_sentence_and_piece_has_the_tag(root):
    translator = untrained(root, "en-de", max_len_b=3)
    encode = BinaryCorpus(root / "data/binary/many").segmentation("src").encode
    tag = encode(["<2de>"]).tolist()[:-1]
    assert len(tag) > 1  # as always with SentencePiece, which divides words at digits
    short, long = translator(["It's so. Isn't it?", "o'clock " * 200])
    pieces = [*short.pieces, *long.pieces]
    assert len(short.pieces) == 1 and len(long.pieces) > 1
    assert all(piece.source[: len(tag)] == tag for piece in pieces)
    assert max(len(piece.source) for piece in pieces) <= translator.model.settings.max_positions
    assert translator([""])[0].translations[0].text == ""  # though its tag is a token
    engine, binary = Engine(translator.model, translator.decode), translator.corpus
    side = Side([[*tag, EOS], [*tag, *pieces[0].source[1:]]])
    corpus = SimpleNamespace(source="src", side=lambda *_: side)
    corpus.search_lengths = lambda sources: binary.tags.search_lengths(sources, sources.lengths)
    assert [bool(found.tokens) for found in best_translations(engine, corpus, "test.x")] == [
        False,
        True,
    ]
    with pytest.raises(UserError, match="contains the word '<2fr>', which is the tag"):
        translator(["It is <2fr> o'clock."])


def test_documents_are_those_of_the_direction(root, tmp_path):
    data = shutil.copytree(root / "data", tmp_path / "data")
    ids = data / "raw/many/given/en-de/test.news.documents"
    ids.parent.mkdir(parents=True, exist_ok=True)
    ids.write_text("a\na\nb\nb\n")
    corpus = load_resolved_settings(root).corpus("many")
    describe_test_sets("many", corpus, tmp_path)
    assert read_json(data / "test_stats/many/en-de-news.json")["documents"] == ["a", "a", "b", "b"]
    assert read_json(data / "test_stats/many/de-en-news.json")["documents"] is None


def test_nothing_of_a_zero_shot_direction_is_learned_or_inspected(root, tmp_path):
    settings = load_resolved_settings(root)
    pair = settings.corpus("many").language_pair("many", "de-fr")
    pair = replace(pair, filter=(CHECKS["word_alignment"](min=1.0),))
    assert Filtering.for_corpus("many/de-fr", pair, root).translations is None
    with pytest.raises(UserError, match="is zero-shot, so there is no training text"):
        inspect_corpus("many/de-fr", settings, None, None, tmp_path, 1)


def test_inspections_of_all_directions_are_what_the_stages_do(root, tmp_path):
    settings, sample = load_resolved_settings(root), Sample(1000, 1)
    source = Downloads(None, tmp_path / "store", None)
    with chdir(root):
        inspected = [
            inspect_corpus(f"many/{each}", settings, sample, source, tmp_path, 1).stages
            for each in TRAINED
        ]
        all_filter_stats = filter_stats_by_stage("many")
    for stage in ("clean", "dedup", "filter"):
        counts = SetCounts()
        for stages in inspected:
            counts.add(stages[stage])
        assert counts.dropped == all_filter_stats[stage]["train"].dropped
        assert counts.pairs_out == all_filter_stats[stage]["train"].pairs_out


def test_a_direction_is_chosen(corpus):
    assert corpus.language_pair("many", "de-fr").languages == ("de", "fr")
    with pytest.raises(
        UserError,
        match="choose one by --direction: en-de, de-en, en-fr, de-fr",
    ):
        corpus.language_pair("many", None)
    with pytest.raises(
        UserError, match="--direction fr-de: many has only en-de, de-en, en-fr, de-fr"
    ):
        corpus.language_pair("many", "fr-de")
    single = corpus.language_pair("many", "en-de")
    assert single.language_pair("one", None) is single
    with pytest.raises(UserError, match="one has one language pair, en-de; remove --direction"):
        single.language_pair("one", "en-de")


def test_each_direction_is_scored_as_its_own_pair(root):
    settings = load_resolved_settings(root)
    run = Run("base", "many", 1)
    hypotheses = root / run.results_folder / "hypotheses"
    hypotheses.mkdir(parents=True)
    outputs = {}
    for each in DIRECTIONS:
        lines = lines_of(each, each.split("-")[1])
        outputs[each] = [lines[0], *(line.replace("1", "one ", 1) for line in lines[1:])]
        text = "".join(f"{line}\n" for line in outputs[each])
        (hypotheses / f"test.{each}-news.tgt").write_text(text)
    TranslationRecord("f", Averaged({}, []), {}, {}, {}).write(
        root / run.results_folder / TRANSLATION
    )
    scores = score_run(settings, *run, root)
    assert [*scores] == [f"{each}-news" for each in DIRECTIONS]
    for each in DIRECTIONS:
        source, target = each.split("-")
        references = lines_of(each, target)
        expected = bleu_metric(references, target).corpus_score(outputs[each], None).score
        metrics = scores[f"{each}-news"]["metrics"]
        (bleu,) = (m["value"] for m in metrics if (m["metric"], m["group"]) == ("bleu", ""))
        assert bleu == pytest.approx(expected)
        assert 0 < expected < 100
        pair = settings.corpus(f"many/{each}")
        described = read_set_description(corpus_folder("many", "test_stats", root), f"{each}-news")
        texts = TranslatedSet(lines_of(each, source), references, outputs[each], pair, described)
        assert metrics == score_test_set(texts)
        assert "wrong language" in {m["metric"] for m in metrics}


def test_shards_make_the_same_text(root, corpus):
    before = {path: path.read_bytes() for path in files_of(root, "clean")}
    with chdir(root):
        for shard in Shard.all(2):
            run_step_on_pairs(Cleaning, "many", corpus, shard, 1)
        # where Snakemake looks for it
        assert (shards_folder("many", "clean") / "2-of-2" / "de-fr").is_dir()
        run_step_on_pairs(Cleaning, "many", corpus, AllShards(2), 1)
    assert {path: path.read_bytes() for path in files_of(root, "clean")} == before
    assert read_filter_stats(filter_stats_file("many", "clean", root))["train"].pairs_in == 32


def test_a_stage_runs_again_after_a_later_one_failed(root, corpus):
    left = filter_stats_file("many/de-en", "filter", root)
    left.parent.mkdir()
    left.write_text("{}")
    with chdir(root):
        run_step_on_pairs(Cleaning, "many", corpus, WholeText(), 1)
    shutil.rmtree(left.parent)


def lines_of(direction, language):
    start, stop = SETS["test" if direction[:5] in TRAINED else "unseen"]
    return TEXTS[language][start:stop]


def files_of(root, stage):
    return [path for path in corpus_folder("many", stage, root).rglob("*") if path.is_file()]


def test_a_source_with_a_tag_is_refused(tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    for direction in DIRECTIONS:
        source, target = direction.split("-")
        path = corpus_folder("many", "tokens") / direction
        path.mkdir(parents=True)
        for name in ("train", "valid"):
            (path / f"{name}.{source}").write_text("a b\nc <2fr> d\n")
            (path / f"{name}.{target}").write_text("a <2fr>\nb\n")
    with pytest.raises(
        UserError, match=r"en-de/train.en:2: the text contains the word '<2fr>', which is the tag"
    ):
        join_tokens("many", corpus)


def test_texts_made_by_systems_are_refused(corpus):
    text = corpus.files.train["en-de-a"]
    train = {**corpus.files.train, "en-de-a": replace(text, source=None)}
    corpus = replace(corpus, files=replace(corpus.files, train=train))
    with pytest.raises(SettingError, match="a corpus with directions cannot have such") as error:
        check_synthetic_texts({"many": corpus}, {})
    assert error.value.keys == ["corpora", "many", "files", "train", "en-de-a"]
