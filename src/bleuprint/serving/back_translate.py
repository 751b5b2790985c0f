"""The stage back_translate: translates one side of a training text from the other side.

It searches as `bleuprint translate` does, with the system's own `decode`, or samples translations
from the model. An empty line has an empty translation, and the stage clean drops the pair. Noise is
added to translations as by Edunov et al. (2018), section 3.1.
"""

from collections.abc import Callable, Sequence
from random import Random

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.synthetic import Noise, synthetic_folder
from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.progress import Progress
from bleuprint.serving.translator import Translator, load_translator
from bleuprint.text.parallel import Pair, TextFolder, encode_pairs
from bleuprint.text.tokenizers import Tokenizer

# Noise replaces words by this character: one token for every tokenizer, and rare in texts.
FILLER = "□"


def back_translate(settings: Settings, name: str) -> None:
    """Translate monolingual text by a trained system, and write both as synthetic training text.

    params.yaml names the text and the system that translates it. It also says whether translations
    are sampled from the model instead of found by beam search, and whether noise is added to them.

    Args:
        settings: The settings in params.yaml.
        name: The name of the synthetic text in params.yaml.

    Raises:
        UserError: params.yaml has no such text, or all translations are empty.
    """
    synthetic = settings.synthetic_text(name)
    # The synthetic text becomes a part of the training text of this corpus. The system that
    # translates may have been trained on another corpus, `synthetic.corpus`.
    corpus = settings.corpus(synthetic.part_of)
    text = corpus.files.train[name]
    first_seed = settings.seeds[0]
    # Each text gets its own random numbers.
    random_seed = f"{first_seed} {name}"
    sampler = None
    if synthetic.sampling is not None:
        sampler = Sampler(random_seed, synthetic.sampling.top_k)
    translator = load_translator(
        run=Run(synthetic.system, synthetic.corpus, first_seed),
        decode=settings.system_on(synthetic.system, synthetic.corpus).decode,
        sampler=sampler,
    )
    change: Callable[[str, int], str] = _unchanged
    if synthetic.noise is not None:
        tokenizer = translator.corpus.tokenizer(corpus.source)
        change = _noise_function(synthetic.noise, tokenizer, random_seed)
    given_text = TextFolder(
        path=paths.download_folder(synthetic.part_of) / name,
        source=corpus.source,
        target=corpus.target,
    )
    with atomic_folder(synthetic_folder(synthetic.part_of, name)) as partial:
        translate_side(
            translator,
            given_text,
            output=given_text.with_path(partial),
            is_source=text.synthetic_side == "source",
            tag=text.tag,
            change=change,
        )


def _noise_function(
    noise: Noise, tokenizer: Tokenizer, random_seed: str
) -> Callable[[str, int], str]:
    """Return a function that adds noise to a translation, for `translate_side`.

    Args:
        noise: How many words are dropped, replaced or moved.
        tokenizer: The tokenizer that splits a translation into words.
        random_seed: The seed of the random numbers.
    """

    def with_noise(sentence: str, line_number: int) -> str:
        """Return a translation with noise: some words are dropped, replaced or moved.

        The line number, counted from 0, is part of the random seed. So a line gets the same noise
        whichever lines are translated before it.
        """
        random = Random(f"{random_seed} {line_number}")
        return add_noise_to_sentence(sentence, tokenizer, noise, random)

    return with_noise


def _unchanged(sentence: str, line_number: int) -> str:  # noqa: ARG001
    """Return a translation as it is; `translate_side` calls this if no noise is wanted."""
    return sentence


def translate_side(
    translator: Translator,
    given_text: TextFolder,
    output: TextFolder,
    is_source: bool,
    tag: str | None,
    change: Callable[[str, int], str] = _unchanged,
) -> None:
    """Translate a monolingual text, and write its sentences and their translations as pairs.

    A note tells the user how many translations are empty.

    Args:
        translator: Translates the sentences of the text.
        given_text: The text, as a parallel text of which one side has only empty lines.
        output: The folder to write the pairs to.
        is_source: Whether the translations are the source side of the pairs (back-translation);
            otherwise they are the target side.
        tag: If given, a word that is put before each source sentence, so that a model can tell
            synthetic text from other text (Caswell et al. 2019). Empty sentences stay empty.
        change: A function that is applied to each translation before it is written, for example to
            add noise. It gets the translation and the line number, counted from 0.

    Raises:
        UserError: All translations are empty.
    """
    name = given_text.path.name
    pair_count = given_text.count("train")
    line_number = 0
    empty_count = 0
    progress = Progress(f"translate {name}", pair_count, "pairs")
    with output.writer("train") as writer, progress:
        # The text is read in blocks of many pairs, so that memory does not grow with the text.
        for block in given_text.blocks("train"):
            source_lines, target_lines = block.sentences()
            lines = target_lines if is_source else source_lines
            pairs = []
            for line, translated in zip(lines, translator(lines), strict=True):
                best_translation = translated.translations[0].text
                translation = change(best_translation, line_number)
                line_number += 1
                if not translation.strip():
                    empty_count += 1
                pair = Pair(translation, line) if is_source else Pair(line, translation)
                pairs.append(_with_tag(pair, tag))
            writer.write_lines(*encode_pairs(pairs))
            progress.advance(len(pairs))
    if empty_count == pair_count:
        raise UserError(f"{name}: all {pair_count:,} translations are empty")
    if empty_count:
        print_message(
            f"{name}: {empty_count:,} of {pair_count:,} translations are empty. The stage clean "
            "drops these sentence pairs",
            "note",
        )


def _with_tag(pair: Pair, tag: str | None) -> Pair:
    """Return a pair with a tag before its source, unless the source is empty."""
    if tag is None or not pair.source.strip():
        return pair
    return Pair(f"{tag} {pair.source}", pair.target)


def add_noise_to_sentence(sentence: str, tokenizer: Tokenizer, noise: Noise, random: Random) -> str:
    """Split a sentence into words, drop, replace and move some of them, and join the words again.

    Args:
        sentence: The sentence.
        tokenizer: The tokenizer that splits and joins.
        noise: How many words are changed.
        random: The source of random numbers.
    """
    words = add_noise(tokenizer.tokenize(sentence), noise, random)
    # A later stage tokenizes the sentence again, and should find the same words. So the words are
    # joined by spaces if this works. `detokenize` might attach a moved comma to its new neighbor,
    # and the tokenizer would then take the two as one word.
    joined_by_spaces = " ".join(words)
    if tokenizer.tokenize(joined_by_spaces) == words:
        return joined_by_spaces
    return tokenizer.detokenize(words)


def add_noise(words: Sequence[str], noise: Noise, random: Random) -> list[str]:
    """Add noise to a sentence: drop some words, replace some by the word FILLER, and move some.

    A model may learn more from synthetic pairs with noise than from clean ones (Edunov et al. 2018,
    section 3.1). If all words were dropped, the first one is kept.

    Args:
        words: The words of the sentence.
        noise: The probability to drop a word, the probability to replace a word (`blank`), and by
            how many positions a word may move (`shuffle`).
        random: The source of random numbers.
    """
    kept_words = []
    for word in words:
        if random.random() >= noise.drop:
            kept_words.append(word)
    if not kept_words:
        kept_words = list(words[:1])  # Still empty if the sentence is.
    for position in range(len(kept_words)):
        if random.random() < noise.blank:
            kept_words[position] = FILLER
    # Words are sorted by their position plus a random number in [0, shuffle + 1). So no word moves
    # by more than `shuffle` positions (Lample et al. 2018, section 2.3).
    keyed_words = []
    for position, word in enumerate(kept_words):
        sort_key = position + (noise.shuffle + 1) * random.random()
        # Of two words with the same key, the one that came first stays first.
        keyed_words.append((sort_key, position, word))
    return [word for _sort_key, _position, word in sorted(keyed_words)]
