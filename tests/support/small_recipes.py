"""Turns a recipe into a project that trains in minutes, with texts that need no download.

What decides the tokens of a line, and how it is translated, is kept: cleaning, rules, tokenizer,
units, language pairs, `decode`, ensembles and arithmetic. Models, the number of updates and the
sizes of vocabularies become small.
"""

import json
import random

from ruamel.yaml import YAML

from bleuprint.corpus import phrasebook
from root import ROOT

# The lines of each set.
SIZES = {"train": 500, "valid": 20, "test": 60}
# Texts that are put between the words of test sentences: tokenizers, cleaning rules and readers of
# lines may treat them differently.
_WHITE = " |  |\t|\u00a0|\u2009|\u3000|\u2028|\u2029|\x85|\x0b|\x0c|\r|\x1c|\x00"
_FORMATS = "\u200b|\u200d|\ufeff|\u00ad|a\u0308|👍🏽|Ã¼|½|1,000.5"
_MARKS = " - |-| @-@ |@@ |▁| ▁ |␠| ␠ | ' |’| \" |&amp;|&quot;|<b>|</b> | <unk> | </s> "
_ENDS = ". |! Mr. | 3. Mai | z. B. |... "
ODD = [*"|".join((_WHITE, _FORMATS, _MARKS, _ENDS)).split("|"), " ||| "]
# Whole lines of a test set.
_BLANK = ("", " ", "  ", "\u2028", "\u00a0")
LINES = (*_BLANK, ".", "-", "x" * 60, "The end.\r", "\ufeffThe end.", "A. B. C.")
# The keys of a text that do not name a file.
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
    """Write the settings of a recipe, made small, and its texts to a micro project.

    Args:
        project: The project, made by `micro.make`.
        name: The name of the recipe, such as `own`.
    """
    yaml = YAML(typ="safe")
    recipe = yaml.load(ROOT / "recipes" / f"{name}.yaml")
    texts = _Texts(project)
    for path in sorted((project.root / "corpora").glob("*.yaml")):
        corpus = yaml.load(path)
        for kind, parts in corpus["files"].items():
            for entry in parts.values():
                # The test sets of a corpus have names, and each has a text.
                corpus_texts = entry.values() if kind == "tests" else [entry]
                for text in corpus_texts:
                    texts.localize(text, kind.removesuffix("s"))
        path.write_text(json.dumps(corpus), encoding="utf-8")
    for entry in recipe["corpora"].values():
        texts.prepare(entry)
    systems = _small_systems(recipe["systems"])
    are_joint = all(_is_joint(entry) for entry in recipe["corpora"].values())
    for system in systems.values():
        # Source and target can share embeddings only if they share a vocabulary.
        system["model"]["tie_embeddings"] = "all" if are_joint else "none"
    params = {"experiment": name, "seeds": [1], "corpora": recipe["corpora"], "systems": systems}
    project.write("params.yaml", json.dumps(params))


def _is_joint(entry):
    """Return whether a corpus has one vocabulary for both languages.

    This is the default, except for a vocabulary of words.

    Args:
        entry: The entry of the corpus in params.yaml.
    """
    units = entry.get("vocabulary") or {}
    for settings in units.values():
        if settings and settings.get("joint") is False:
            return False
    words = units.get("words")
    return not words or bool(words.get("joint"))


def _small_systems(systems):
    """Return small systems in place of those of a recipe.

    The first system stands for all that differ only in model or training. Others with an ensemble
    or with settings of their own for the search are kept.

    Args:
        systems: The systems in the recipe, by name.
    """
    small_systems = {}
    for name, system in systems.items():
        has_ensemble = bool((system.get("average") or {}).get("ensemble"))
        if small_systems and not system.get("decode") and not has_ensemble:
            continue
        small = {"model": dict(_MODEL), "train": dict(_TRAIN), "average": {"last": 2}}
        if has_ensemble:
            small["average"]["ensemble"] = True
        first_system = next(iter(small_systems.values()), {})
        for key in ("decode", "arithmetic"):
            # A system that is `like` another one inherits its settings.
            value = system.get(key)
            if not value and "like" in system:
                value = first_system.get(key)
            if value is not None:
                small[key] = value
        if system.get("corpora"):
            small["corpora"] = {corpus: {} for corpus in system["corpora"]}
        small_systems[name] = small
    if all("corpora" in small for small in small_systems.values()):
        for small in small_systems.values():
            del small["corpora"]
    return small_systems


class _Texts:
    """Writes parallel texts, in the languages of a recipe, to the folder inputs of a project."""

    def __init__(self, project):
        """Remember the project; nothing is written yet."""
        self._project = project
        self._written_names = set()

    def prepare(self, entry):
        """Replace the files of a corpus by texts of this project, and make its vocabulary small.

        Args:
            entry: The entry of the corpus in params.yaml, which is changed.
        """
        units = entry.get("vocabulary") or {}
        if units.get("bpe"):
            units["bpe"]["num_merges"] = min(300, units["bpe"]["num_merges"])
        if units.get("sentencepiece"):
            units["sentencepiece"]["vocab_size"] = 300
        parts = (entry.get("files") or {}).get("train") or {}
        for part, text in list(parts.items()):
            self.localize(text or {}, "train")
            sides = [key for key in text or {} if key not in _NO_SIDES]
            if len(sides) == 1:
                # The other side would be synthetic: a system would have to be trained first.
                del parts[part]
        for direction in (entry.get("directions") or {}).values():
            self.prepare(direction)

    def localize(self, text, kind):
        """Replace the files of a text by files of this project.

        Args:
            text: The entry of the text, which is changed.
            kind: The kind of the set: train, valid or test.
        """
        for side in [key for key in text if key not in _NO_SIDES]:
            language = _OWN.get(side, side)
            text[side] = {"path": self.path(kind, language)}
        for key in ("format", "pairs", "pairs_seed"):
            text.pop(key, None)

    def path(self, kind, language):
        """Return the path of a file with the sentences of a set; write it if it does not exist.

        Args:
            kind: The kind of the set: train, valid or test.
            language: The language.
        """
        name = f"inputs/{kind}.{language}"
        if name not in self._written_names:
            self._written_names.add(name)
            lines = [f"{sentence}\n" for sentence in sentences(kind, language)]
            (self._project.root / name).write_bytes("".join(lines).encode())
        return name


def sentences(kind, language):
    """Return the sentences of a set; the nth sentences of all languages translate each other.

    German, English and French come from the phrasebook. In other languages, each English word is
    replaced by a Chinese character. Test sets contain odd characters and odd lines.

    Args:
        kind: The kind of the set: train, valid or test.
        language: The language.
    """
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
    lines[5] = " ".join(lines[10:20])  # A line of several sentences.
    return [*lines, *LINES]


def _foreign_word(word):
    """Return a Chinese character for a word, always the same one."""
    return chr(0x4E00 + sum(map(ord, word)) * 7919 % 3000)
