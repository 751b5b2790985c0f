"""The stage back_translate: the side of a training text that a system translates from the other.

It searches as `bleuprint translate` does, with the system's own `decode`, or draws translations. An
empty line has an empty translation, and clean drops the pair. Noise in the translations is that of
Edunov et al. (2018), section 3.1.
"""

from collections.abc import Callable, Sequence
from random import Random

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.synthetic import Noise, synthetic_folder
from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.progress import Progress
from bleuprint.serving.translator import Translator, load_translator
from bleuprint.text.parallel import Pair, TextFolder, pack_pairs
from bleuprint.text.tokenizers import Tokenizer

# What stands for a replaced word: one token for every tokenizer, and rare in texts.
FILLER = "□"


def back_translate(settings: Settings, name: str) -> None:
    """Translate a text of params.yaml by its system; raises UserError if there is none."""
    synthetic = settings.synthetic_text(name)
    corpus = settings.corpus(synthetic.part_of)
    text = corpus.files.train[name]
    run = Run(synthetic.system, synthetic.corpus, settings.seeds[0])
    decode = settings.system_on(synthetic.system, synthetic.corpus).decode
    seed = f"{settings.seeds[0]} {name}"
    sampler = Sampler(seed, synthetic.sampling.top_k) if synthetic.sampling else None
    translator = load_translator(run, decode, sampler=sampler)
    tokenizer = translator.corpus.tokenizer(corpus.source)
    given = TextFolder(
        paths.download_folder(synthetic.part_of) / name, corpus.source, corpus.target
    )

    def with_noise(sentence: str, line: int) -> str:
        if synthetic.noise is None:
            return sentence
        random = Random(f"{seed} {line}")
        return add_noise_to_sentence(sentence, tokenizer, synthetic.noise, random)

    with atomic_folder(synthetic_folder(synthetic.part_of, name)) as partial:
        output = given.with_path(partial)
        is_source = text.synthetic_side == "source"
        translate_side(translator, given, output, is_source, text.tag, with_noise)


def translate_side(
    translator: Translator,
    given: TextFolder,
    output: TextFolder,
    is_source: bool,
    tag: str | None,
    change: Callable[[str, int], str] = lambda text, _: text,
) -> None:
    """Write the pairs of a text with translations in place of one side.

    Args:
        translator: What translates.
        given: The text, of which one side is empty.
        output: Where the pairs are written.
        is_source: Whether the source is translated from the target, or the reverse.
        tag: Put before each source but empty ones, as a word (Caswell et al. 2019).
        change: Gives for a translation and its line, counted from 0, what is written.

    Raises:
        UserError: All translations are empty.
    """
    name = given.path.name
    total = given.count("train")
    line_number = 0
    empty = 0
    progress = Progress(f"translate {name}", total, "pairs")
    with output.writer("train") as writer, progress:
        for block in given.blocks("train"):
            pairs = block.pairs()
            lines = [pair.target if is_source else pair.source for pair in pairs]
            new_pairs = []
            for line, translated in zip(lines, translator(lines), strict=True):
                text = change(translated.translations[0].text, line_number)
                line_number += 1
                if not text.strip():
                    empty += 1
                pair = Pair(text, line) if is_source else Pair(line, text)
                new_pairs.append(_tagged(pair, tag))
            writer.write_packed(*pack_pairs(new_pairs))
            progress.advance(len(lines))
    if empty == total:
        raise UserError(f"{name}: all {total:,} translations are empty")
    if empty:
        print_message(
            f"{name}: {empty:,} of {total:,} translations are empty; clean drops them", "note"
        )


def _tagged(pair: Pair, tag: str | None) -> Pair:
    """A pair with the tag before its source."""
    if tag is None or not pair.source.strip():
        return pair
    return Pair(f"{tag} {pair.source}", pair.target)


def add_noise_to_sentence(sentence: str, tokenizer: Tokenizer, noise: Noise, random: Random) -> str:
    """Return the sentence with noise in the words that `tokenizer` finds."""
    words = add_noise(tokenizer.tokenize(sentence), noise, random)
    # a mark after another word than before would become part of it
    apart = " ".join(words)
    return apart if tokenizer.tokenize(apart) == words else tokenizer.detokenize(words)


def add_noise(words: Sequence[str], noise: Noise, random: Random) -> list[str]:
    """Return the words that are not left out, some as FILLER, in another order.

    At least one word stays, if there is any. The order is that of i + u, i a word's position and u
    uniform in [0, shuffle + 1), so that no word moves by more than `shuffle` positions (Lample et
    al. 2018, section 2.3).
    """
    kept = []
    for word in words:
        if random.random() >= noise.drop:
            kept.append(word)
    if not kept:
        kept = list(words[:1])
    for position in range(len(kept)):
        if random.random() < noise.blank:
            kept[position] = FILLER
    words_by_key = []
    for position, word in enumerate(kept):
        key = position + (noise.shuffle + 1) * random.random()
        words_by_key.append((key, position, word))
    return [word for _, _, word in sorted(words_by_key)]
