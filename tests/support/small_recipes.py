"""Every recipe as a project of minutes: its texts from files of this machine, its systems tiny.

What decides the tokens of a line, and how it is searched, is the recipe's: cleaning, rules,
tokenizer, units, directions, `decode`, ensembles, arithmetic. Models, updates and the sizes of
vocabularies are not.
"""

import json
import random

from ruamel.yaml import YAML

from bleuprint.corpus import phrasebook
from root import ROOT

# The lines of each set.
SIZES = {"train": 500, "valid": 20, "test": 60}
# Put between the words of test sentences: what a tokenizer, a cleaning rule or a reader of lines
# may take in its own way.
_WHITE = " |  |\t|\u00a0|\u2009|\u3000|\u2028|\u2029|\x85|\x0b|\x0c|\r|\x1c|\x00"
_FORMATS = "\u200b|\u200d|\ufeff|\u00ad|a\u0308|👍🏽|Ã¼|½|1,000.5"
_MARKS = " - |-| @-@ |@@ |▁| ▁ |␠| ␠ | ' |’| \" |&amp;|&quot;|<b>|</b> | <unk> | </s> "
_ENDS = ". |! Mr. | 3. Mai | z. B. |... "
ODD = [*"|".join((_WHITE, _FORMATS, _MARKS, _ENDS)).split("|"), " ||| "]
# Whole lines of a test set.
_BLANK = ("", " ", "  ", "\u2028", "\u00a0")
LINES = (*_BLANK, ".", "-", "x" * 60, "The end.\r", "\ufeffThe end.", "A. B. C.")
# What a text has beside its files.
_NO_SIDES = ("license_and_citation", "format", "pairs", "pairs_seed", "tag", "repeat")
# The languages of the recipe own, whose files are called otherwise.
_OWN = {"source": "de", "target": "en"}
_MODEL = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "d_model": 32,
    "d_ff": 48,
    "heads": 2,
    "max_positions": 512,
}
_TRAIN = {
    "tokens_per_update": 600,
    "max_tokens": 600,
    "max_updates": 150,
    "lr_schedule": {"inverse_sqrt": {"lr": 0.01, "warmup_updates": 20}},
    "clip_norm": 1.0,
    "validate_interval": 75,
    "save_interval": 75,
    "keep_last": 2,
    "keep_best": 1,
}


def write(project, name):
    """Make a micro project that of a recipe, with texts of its own."""
    yaml = YAML(typ="safe")
    recipe = yaml.load(ROOT / "recipes" / f"{name}.yaml")
    texts = _Texts(project)
    for path in sorted((project.root / "corpora").glob("*.yaml")):
        corpus = yaml.load(path)
        for kind, parts in corpus["files"].items():
            for entry in parts.values():
                for text in entry.values() if kind == "tests" else [entry]:
                    texts.localize(text, kind.removesuffix("s"))
        path.write_text(json.dumps(corpus), encoding="utf-8")
    for entry in recipe["corpora"].values():
        texts.prepare(entry)
    systems = _systems(recipe["systems"])
    joint = all(_is_joint(entry) for entry in recipe["corpora"].values())
    for system in systems.values():
        system["model"]["tie_embeddings"] = "all" if joint else "none"
    kept = {"experiment": name, "seeds": [1], "corpora": recipe["corpora"], "systems": systems}
    project.write("params.yaml", json.dumps(kept))


def _is_joint(entry):
    """Whether a corpus has one vocabulary for both languages."""
    units = entry.get("vocabulary") or {}
    return not any((kind or {}).get("joint") is False for kind in units.values()) and not (
        units.get("words") and not units["words"].get("joint")
    )


def _systems(systems):
    """One system for each search and kind of average, with its corpora."""
    kept = {}
    for name, system in systems.items():
        average, decode = system.get("average") or {}, system.get("decode")
        if kept and not decode and not average.get("ensemble"):
            continue
        small = {"model": dict(_MODEL), "train": dict(_TRAIN), "average": {"last": 2}}
        if average.get("ensemble"):
            small["average"]["ensemble"] = True
        for key in ("decode", "arithmetic"):
            if key in system or "like" in system:
                small[key] = system.get(key) or next(iter(kept.values()), {}).get(key)
        if corpora := system.get("corpora"):
            small["corpora"] = {key: {} for key in corpora}
        kept[name] = {key: value for key, value in small.items() if value is not None}
    if all("corpora" in system for system in kept.values()):
        for system in kept.values():
            del system["corpora"]
    return kept


class _Texts:
    """Parallel texts in the inputs of a project, of any language of the recipes."""

    def __init__(self, project):
        self._project, self._written = project, {}

    def prepare(self, entry):
        """Give a corpus of a recipe texts of this project, and vocabularies that these fill."""
        units = entry.get("vocabulary") or {}
        if units.get("bpe"):
            units["bpe"]["num_merges"] = min(300, units["bpe"]["num_merges"])
        if units.get("sentencepiece"):
            units["sentencepiece"]["vocab_size"] = 300
        parts = (entry.get("files") or {}).get("train") or {}
        for part, text in list(parts.items()):
            self.localize(text or {}, "train")
            sides = [key for key in text or {} if key not in _NO_SIDES]
            if len(sides) == 1:  # the other is made by a system
                del parts[part]
        for direction in (entry.get("directions") or {}).values():
            self.prepare(direction)

    def localize(self, text, kind):
        """Put files of this project in place of a text's."""
        for side in [key for key in text if key not in _NO_SIDES]:
            language = _OWN.get(side, side)
            text[side] = {"path": self.path(kind, language)}
        for key in ("format", "pairs", "pairs_seed"):
            text.pop(key, None)

    def path(self, kind, language):
        name = f"inputs/{kind}.{language}"
        if name not in self._written:
            self._written[name] = True
            lines = sentences(kind, language)
            (self._project.root / name).write_bytes("".join(f"{x}\n" for x in lines).encode())
        return name


def sentences(kind, language):
    """The sentences of a set in a language; test sets are odd."""
    known = language if language in ("de", "fr") else "en"
    lines = phrasebook.sentences(kind, known)[: SIZES[kind]]
    if language not in ("de", "fr", "en"):
        lines = [" ".join(map(_foreign_word, line.split())) for line in lines]
    if kind != "test":
        return lines
    rng = random.Random(f"{kind} {language}")
    for number in range(0, len(lines), 2):
        words = lines[number].split(" ")
        for place in rng.sample(range(len(words)), min(3, len(words))):
            words[place] += rng.choice(ODD)
        lines[number] = " ".join(words)
    lines[5] = " ".join(lines[10:20])  # several sentences
    return [*lines, *LINES]


def _foreign_word(word):
    return chr(0x4E00 + sum(map(ord, word)) * 7919 % 3000)
