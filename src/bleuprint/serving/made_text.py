"""The stage make_text: the side of a training text that a system translates from the other.

It searches as `bleuprint translate` does, with the system's own `decode`. An empty line has an
empty translation, and clean drops the pair.
"""

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.progress import Progress
from bleuprint.serving.translator import Translator, load_translator
from bleuprint.text.parallel import Pair, TextFolder, packed


def make_text(settings: Settings, name: str) -> None:
    """Translate a text of params.yaml by its system; raises UserError if there is none."""
    made = settings.made_text(name)
    corpus = settings.corpus(made.part_of)
    cell = Cell(made.system, made.corpus, settings.seeds[0])
    decode = settings.system_on(made.system, made.corpus).decode
    translator = load_translator(settings, cell, decode)
    given = TextFolder(paths.given(made.part_of) / name, corpus.source, corpus.target)
    text = corpus.files.train[name]
    with whole_folder(paths.made_text(made.part_of, name)) as partial:
        translate_side(translator, given, given.at(partial), text.made == "source", text.tag)


def translate_side(
    translator: Translator, given: TextFolder, output: TextFolder, source: bool, tag: str | None
) -> None:
    """Write the pairs of `given` with a translation in place of the source, or of the target.

    `tag` is put before each source but empty ones, as a word (Caswell et al. 2019). Raises
    UserError if all translations are empty.
    """
    name, empty = given.path.name, 0
    progress = Progress(f"translate {name}", given.count("train"), "pairs")
    with output.writer("train") as writer, progress:
        for block in given.blocks("train"):
            lines = [pair.target if source else pair.source for pair in block.pairs()]
            texts = [translated.best[0].text for translated in translator(lines)]
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
