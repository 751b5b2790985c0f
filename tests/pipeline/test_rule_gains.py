"""The corpora and the table of the command rules, without trainings."""

import json
from pathlib import Path

import pytest

from bleuprint.config.experiment import Dedup, load
from bleuprint.pipeline import rule_gains
from bleuprint.pipeline.rule_gains import RuleExperiment, make, table, variants
from bleuprint.runtime.errors import UserError
from root import ROOT

DEFAULT = (ROOT / "params.yaml").read_text()


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    Path("params.yaml").write_text(DEFAULT)
    return tmp_path


def names(rules):
    return {rule.name() for rule in rules}


@pytest.mark.usefixtures("project")
def test_each_corpus_lacks_the_rule_that_its_name_says_and_nothing_else():
    default = load().corpora["phrasebook-en-de"]
    experiment = make("phrasebook-en-de", None, 2, 300)
    settings = load(experiment.root / "params.yaml")
    assert settings.seeds == (1, 2)
    assert settings.systems == {"tiny": load().systems["tiny"]}
    cleaned, bare, *others = settings.corpora.values()
    for section in ("clean", "dedup", "filter", "split", "tokenize", "vocabulary"):
        assert getattr(cleaned, section) == getattr(default, section)
    assert (bare.clean, bare.filter) == ((), ())
    assert bare.dedup == Dedup(False, False, False, "none")
    lost = []
    for corpus in others:
        less = names(cleaned.clean) - names(corpus.clean)
        less |= names(cleaned.filter) - names(corpus.filter)
        if corpus.dedup.decontaminate == "none":
            less.add("decontaminate")
        if not (corpus.dedup.pairs or corpus.dedup.sources or corpus.dedup.targets):
            less.add("duplicates")
        lost += less
        assert len(less) == 1
    every = names(cleaned.clean) | names(cleaned.filter) | {"duplicates", "decontaminate"}
    assert set(lost) == every
    assert [f"no-{rule.replace('_', '-')}" for rule in lost] == list(settings.corpora)[2:]
    assert all(corpus.files == cleaned.files for corpus in settings.corpora.values())
    assert all(corpus.tokenize == default.tokenize for corpus in settings.corpora.values())


@pytest.mark.usefixtures("project")
def test_texts_are_drawn_once_and_written_again_only_if_they_change():
    experiment = make("phrasebook-en-de", "small", 1, 300)
    texts = sorted((experiment.root / "inputs").iterdir())
    assert [text.name for text in texts] == [
        f"{name}.{side}" for name in ("test.phrasebook", "train", "valid") for side in ("de", "en")
    ]
    lines = {text.name: text.read_bytes().count(b"\n") for text in texts}
    assert lines["train.de"] == lines["train.en"] == 300
    files = [*texts, experiment.root / "params.yaml"]
    before = [(file.stat().st_mtime_ns, file.stat().st_ino) for file in files]
    make("phrasebook-en-de", "small", 1, 300)
    assert [(file.stat().st_mtime_ns, file.stat().st_ino) for file in files] == before
    make("phrasebook-en-de", "small", 1, 200)
    assert texts[2].read_bytes().count(b"\n") == 200
    assert texts[0].stat().st_mtime_ns == before[0][0]


TORTURE = "a\rb\x85c\u2028d\x1ce\0 \ufeffx"


@pytest.mark.usefixtures("project")
def test_a_line_ends_at_a_line_feed_alone_also_in_drawn_texts():
    Path("inputs").mkdir()
    for side, text in (("en", f"{TORTURE}\nsecond"), ("de", f"zwei\n{TORTURE}")):
        Path(f"inputs/mine.{side}").write_bytes(text.encode())  # without a last line feed
    for side in ("en", "de"):
        url = f'url: "phrasebook:noisy.{side}"'
        assert url in DEFAULT
        text = Path("params.yaml").read_text()
        Path("params.yaml").write_text(text.replace(url, f"path: inputs/mine.{side}"))
    root = make("phrasebook-en-de", None, 1, 10).root
    sides = [(root / f"inputs/train.{side}").read_bytes().decode() for side in ("en", "de")]
    pairs = set(zip(*(side.split("\n") for side in sides), strict=True))
    assert pairs == {(TORTURE, "zwei"), ("second", TORTURE), ("", "")}


@pytest.mark.parametrize("kind", ["valid", "tests"])
def test_drawn_sets_are_refused(project, monkeypatch, kind):
    settings = load()
    corpus = settings.corpora["phrasebook-en-de"]
    object.__setattr__(corpus.files, kind, {})
    monkeypatch.setattr(rule_gains, "load", lambda: settings)
    with pytest.raises(UserError, match=f"corpora.phrasebook-en-de.files.{kind} is empty"):
        make("phrasebook-en-de", None, 3, 100)
    assert not (project / "work").exists()


@pytest.mark.usefixtures("project")
def test_an_unknown_corpus_or_system_is_refused():
    with pytest.raises(UserError, match="no corpora entry 'mine'; there are: phrasebook-en-de"):
        make("mine", None, 3, 100)
    with pytest.raises(UserError, match="no systems entry 'big'; there are: tiny"):
        make("phrasebook-en-de", "big", 3, 100)


def test_a_corpus_without_rules_is_refused():
    dedup = {"pairs": False, "sources": False, "targets": False, "decontaminate": "none"}
    with pytest.raises(ValueError, match="no cleaning rules"):
        variants({"clean": {}, "dedup": dedup, "filter": {}})
    assert list(variants({"clean": {}, "dedup": {**dedup, "pairs": True}, "filter": {}})) == [
        "cleaned",
        "as-it-is",
        "no-duplicates",
    ]


def test_the_table_pairs_scores_by_seed(tmp_path, monkeypatch):
    bleu = {
        "cleaned": (20.0, 22.0, 24.0),
        "as-it-is": (19.0, 20.0, 21.0),
        "no-x-y": (20.0, 22.0, 24.0),
    }
    experiment = RuleExperiment(tmp_path, "tiny", (1, 2, 3), {name: {} for name in bleu})

    def read_scores(path):
        *_, name, seed, _ = path.parts
        return {"t": {"bleu": {"score": bleu[name][int(seed) - 1]}}}

    monkeypatch.setattr(rule_gains, "read_scores", read_scores)
    counts = {
        "clean": {"changed": {"x_y": 1234}},
        "dedup": {"dropped": {"duplicate_pair": 3, "same_source": 2, "target_held_out": 7}},
        "filter": {"dropped": {"z": 1}},
    }
    for stage, given in counts.items():
        path = tmp_path / "data" / "ledgers" / "cleaned" / f"{stage}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"sets": {"train": given}}))
    assert rule_gains._found(tmp_path) == {
        "no-x-y": 1234,
        "no-duplicates": 5,
        "no-decontaminate": 7,
        "no-z": 1,
    }
    lines = [line.split() for line in table(experiment)]
    # differences -1, -2, -3: mean -2, s 1, t(0.975, 2) 4.303, 4.303 / sqrt(3) = 2.48
    assert lines[2:5] == [
        ["nothing", "22.0", "\u00b1", "2.0"],
        ["all", "rules", "20.0", "\u00b1", "1.0", "-2.0", "[-4.5,", "+0.5]"],
        ["no-x-y", "1,234", "22.0", "\u00b1", "2.0", "+0.0"],
    ]
    assert experiment.unscored() == 9


@pytest.mark.usefixtures("project")
def test_a_text_that_a_system_translates_is_refused(monkeypatch):
    settings = load()
    (text,) = settings.corpora["phrasebook-en-de"].files.train.values()
    object.__setattr__(text, "target", None)
    monkeypatch.setattr(rule_gains, "load", lambda: settings)
    with pytest.raises(UserError, match=r"files\.train: systems translate one side of phrasebook"):
        make("phrasebook-en-de", None, 3, 100)
