"""The stage back_translate: the side of a training text that a system translates from the other.

It searches as `bleuprint translate` does, with the system's own `decode`, or draws translations. An
empty line has an empty translation, and clean drops the pair.
"""

from collections.abc import Callable
from random import Random

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.corpus.noise import noisy_sentence
from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.progress import Progress
from bleuprint.serving.translator import Translator, load_translator
from bleuprint.text.parallel import Pair, TextFolder, packed


def back_translate(settings: Settings, name: str) -> None:
    """Translate a text of params.yaml by its system; raises UserError if there is none."""
    made = settings.synthetic_text(name)
    corpus = settings.corpus(made.part_of)
    cell = Run(made.system, made.corpus, settings.seeds[0])
    decode = settings.system_on(made.system, made.corpus).decode
    seed = f"{settings.seeds[0]} {name}"
    sampler = Sampler(seed, made.sampling.top_k) if made.sampling else None
    translator = load_translator(cell, decode, sampler=sampler)
    given = TextFolder(paths.given(made.part_of) / name, corpus.source, corpus.target)
    text, tokenizer = corpus.files.train[name], translator.corpus.tokenizer(corpus.source)

    def noise(sentence: str, line: int) -> str:
        random = Random(f"{seed} {line}")
        return noisy_sentence(sentence, tokenizer, made.noise, random) if made.noise else sentence

    with whole_folder(paths.synthetic_text(made.part_of, name)) as partial:
        output, source = given.at(partial), text.synthetic_side == "source"
        translate_side(translator, given, output, source, text.tag, noise)


def translate_side(
    translator: Translator,
    given: TextFolder,
    output: TextFolder,
    source: bool,
    tag: str | None,
    change: Callable[[str, int], str] = lambda text, _: text,
) -> None:
    """Write the pairs of `given` with a translation in place of the source, or of the target.

    `change`: of a translation and its line, counted from 0, gives the one that is written. `tag` is
    put before each source but empty ones, as a word (Caswell et al. 2019). Raises UserError if all
    translations are empty.
    """
    name, number, empty = given.path.name, 0, 0
    progress = Progress(f"translate {name}", given.count("train"), "pairs")
    with output.writer("train") as writer, progress:
        for block in given.blocks("train"):
            lines = [pair.target if source else pair.source for pair in block.pairs()]
            texts = [translated.best[0].text for translated in translator(lines)]
            texts = [change(text, number + i) for i, text in enumerate(texts)]
            number += len(texts)
            empty += sum(not text.strip() for text in texts)
            sides = zip(*((texts, lines) if source else (lines, texts)), strict=True)
            tagged = [Pair(f"{tag} {a}" if tag and a.strip() else a, b) for a, b in sides]
            writer.write_packed(*packed(tagged))
            progress.advance(len(lines))
    total = given.count("train")
    if empty == total:
        raise UserError(f"{name}: all {total:,} translations are empty")
    if empty:
        say(f"{name}: {empty:,} of {total:,} translations are empty; clean drops them", "note")
