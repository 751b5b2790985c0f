"""The stage back_translate: translates one side of a training text from the other side.

The stage searches as `bleuprint translate` does, with the system's own `decode`, or samples
translations from the model. An empty line has an empty translation, and the stage clean drops the
pair. Noise is added to translations as by Edunov et al. (2018), section 3.1.

A long text is translated in pieces (translated_pieces.py): by one or several processes of the
stage, or by jobs of Snakemake, which each translate a shard, that is, some of the pieces.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.synthetic import SyntheticText, synthetic_folder
from bleuprint.config.system import Decode
from bleuprint.corpus.steps.shard import AllShards, Shard, TextToIndex, WholeText, Work
from bleuprint.corpus.steps.sharded import INDEX_FOLDER
from bleuprint.corpus.steps.text_index import (
    training_text_sha256,
    with_text_index,
    write_text_index,
)
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.sampling import Sampler
from bleuprint.runtime import fingerprint
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.runtime.wording import counted
from bleuprint.serving.piece_processes import Advance, TranslatePiece, translate_pieces
from bleuprint.serving.translated_pieces import (
    MISSING,
    PieceFolder,
    TextPiece,
    cut_into_pieces,
)
from bleuprint.serving.translation_noise import noise_function
from bleuprint.serving.translator import Translator, load_translator
from bleuprint.text.line_index import index_lines
from bleuprint.text.parallel import Pair, TextFolder, encode_pairs

_STAGE = "back_translate"
# The folder for finished pieces of texts that are not finished.
_UNFINISHED_TEXTS = Path("work", "pieces")


@dataclass(frozen=True)
class _Translation:
    """The translation of a monolingual text: the text, the model, and how the model is used.

    Attributes:
        name: The name of the text in params.yaml.
        text: The text, as a parallel text of which one side has only empty lines.
        is_source: Whether the translations are the source side of the pairs (back-translation);
            otherwise they are the target side.
        tag: A word that is put before each source sentence; None for no tag.
        synthetic: The system that translates, and whether translations are sampled or get noise.
        decode: The settings of the search.
        arithmetic: The arithmetic of the system.
        first_seed: The first seed of the experiment: that of the model.
    """

    name: str
    text: TextFolder
    is_source: bool
    tag: str | None
    synthetic: SyntheticText
    decode: Decode
    arithmetic: str
    first_seed: int

    @classmethod
    def from_settings(cls, settings: Settings, name: str) -> "_Translation":
        """Return how a synthetic text is translated.

        Args:
            settings: The settings in params.yaml.
            name: The name of the text.

        Raises:
            UserError: params.yaml has no such text.
        """
        synthetic = settings.synthetic_text(name)
        # The synthetic text becomes a part of the training text of this corpus. The system that
        # translates may have been trained on another corpus, `synthetic.corpus`.
        corpus = settings.corpus(synthetic.part_of)
        text = corpus.files.train[name]
        system = settings.system_on(synthetic.system, synthetic.corpus)
        return cls(
            name=name,
            text=TextFolder(
                path=paths.download_folder(synthetic.part_of) / name,
                source=corpus.source,
                target=corpus.target,
            ),
            is_source=text.synthetic_side == "source",
            tag=text.tag,
            synthetic=synthetic,
            decode=system.decode,
            arithmetic=system.arithmetic,
            first_seed=settings.seeds[0],
        )

    @property
    def run(self) -> Run:
        """The run whose model translates."""
        return Run(self.synthetic.system, self.synthetic.corpus, self.first_seed)

    @property
    def shards_folder(self) -> Path:
        """The folder in which each shard of the text has a folder."""
        return paths.shards_folder(f"{self.synthetic.part_of}/{self.name}", _STAGE)

    @property
    def kept_folder(self) -> Path:
        """The folder for finished pieces while the text is not finished."""
        return _UNFINISHED_TEXTS / self.synthetic.part_of / self.name

    @property
    def pieces(self) -> list[TextPiece]:
        """The pieces of the text, in order. A text without an index is read to count its lines."""
        return cut_into_pieces(self.text.count("train"))

    def compute_fingerprint(self) -> str:
        """Return the hash of everything that decides the translations.

        This reads and hashes the model, and a text without an index.
        """
        corpus = BinaryCorpus(paths.corpus_folder(self.run.corpus, "binary"))
        return fingerprint.of_settings(
            code_fingerprint(_STAGE),
            self.name,
            self.text.languages,
            self.is_source,
            self.synthetic,
            self.decode,
            self.arithmetic,
            self.first_seed,
            list(training_text_sha256(self.text)),
            corpus.training_sha256,
            _sha256_by_file(self.run.models_folder / "averaged"),
        )

    def load(self) -> TranslatePiece:
        """Load the model, and return a function that translates a piece of the text."""
        # Each text gets its own random numbers.
        random_seed = f"{self.first_seed} {self.name}"
        sampler = None
        if self.synthetic.sampling is not None:
            sampler = PieceSampler(random_seed, self.synthetic.sampling.top_k)
        translator = load_translator(run=self.run, decode=self.decode, sampler=sampler)
        change: Callable[[str, int], str] = _unchanged
        if self.synthetic.noise is not None:
            tokenizer = translator.corpus.tokenizer(self.text.source)
            change = noise_function(self.synthetic.noise, tokenizer, random_seed)

        def translate(piece: TextPiece, advance: Advance) -> list[str]:
            """Return the translations of the lines of a piece."""
            if sampler is not None:
                sampler.begin_piece(piece)
            return translate_piece(translator, self.text, piece, self.is_source, change, advance)

        return translate


def back_translate(settings: Settings, name: str, work: Work) -> None:
    """Translate monolingual text by a trained system, and write both as synthetic training text.

    params.yaml names the text and the system that translates it. It also says whether translations
    are sampled from the model instead of found by beam search, and whether noise is added to them.
    If this process is killed, the next one continues with the first unfinished piece of the text.

    Args:
        settings: The settings in params.yaml.
        name: The name of the synthetic text in params.yaml.
        work: What this process does: index the text, translate one shard of it, join all shards,
            or translate the whole text.

    Raises:
        UserError: params.yaml has no such text; a shard is missing, damaged, or was translated by
            another model; or all translations are empty.
    """
    translation = _Translation.from_settings(settings, name)
    index_folder = translation.shards_folder / INDEX_FOLDER
    match work:
        case TextToIndex():
            with atomic_folder(index_folder) as folder:
                write_text_index(translation.text, folder)
        case Shard():
            _translate_shard(translation, work, index_folder)
        case AllShards():
            _join_shards(translation, work)
        case WholeText():
            _translate_whole_text(translation)


def _translate_shard(translation: _Translation, shard: Shard, index_folder: Path) -> None:
    """Translate every n-th piece of a text, and write the pieces to the folder of the shard.

    Snakemake removes this folder if the process is killed. So finished pieces are also kept in a
    folder that Snakemake does not know.

    Args:
        translation: The text, and how it is translated.
        shard: Which of how many shards: the second one of eight has the pieces 2, 10, 18, ...
        index_folder: The folder of the text's index; if it does not exist, the text is read.
    """
    translation = _with_index(translation, index_folder)
    kept_pieces = PieceFolder(translation.kept_folder, translation.compute_fingerprint())
    pieces = translation.pieces[shard.number - 1 :: shard.total]
    _translate_unfinished(translation, pieces, kept_pieces, max_processes=1)
    with atomic_folder(translation.shards_folder / str(shard)) as folder:
        for piece in pieces:
            kept_pieces.copy_to(folder, piece)


def _join_shards(translation: _Translation, shards: AllShards) -> None:
    """Join the translated pieces in the folders of all shards, and write the synthetic text.

    Args:
        translation: The text, and how it is translated.
        shards: How many shards there are.

    Raises:
        UserError: A piece is missing, damaged, or was translated by another model.
    """
    translation = _with_index(translation, index_folder=None)
    translation_fingerprint = translation.compute_fingerprint()
    folders = []
    for piece in translation.pieces:
        # As in `_translate_shard`: of eight shards, the second one has the pieces 2, 10, 18, ...
        shard_number = (piece.number - 1) % shards.total + 1
        shard_folder = translation.shards_folder / str(Shard(shard_number, shards.total))
        folders.append(PieceFolder(shard_folder, translation_fingerprint))
    remedy = f"Remove all shards, then translate them again: rm -r {translation.shards_folder}"
    _join_pieces(translation, folders, remedy)


def _translate_whole_text(translation: _Translation) -> None:
    """Translate the unfinished pieces of a text, then join all pieces."""
    translation = _with_index(translation, index_folder=None)
    kept_pieces = PieceFolder(translation.kept_folder, translation.compute_fingerprint())
    _translate_unfinished(translation, translation.pieces, kept_pieces)
    folders = [kept_pieces] * len(translation.pieces)
    _join_pieces(translation, folders, remedy="Run the same command again")


def _with_index(translation: _Translation, index_folder: Path | None) -> _Translation:
    """Return a translation whose text finds its lines without reading the lines before them.

    Args:
        translation: The text, and how it is translated.
        index_folder: The folder with the index of the text, which another process has written. If
            it is None or does not exist, the text is read here.

    Raises:
        UserError: The text has changed since it was indexed, or a file is missing.
    """
    text = translation.text
    if index_folder is not None and index_folder.is_dir():
        remedy = f"Remove {index_folder}, or index the text again with --index"
        return replace(translation, text=with_text_index(text, index_folder, remedy))
    indexes = {}
    for path in text.files("train"):
        try:
            indexes[path] = index_lines(path)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
    return replace(translation, text=replace(text, indexes=indexes))


def _translate_unfinished(
    translation: _Translation,
    pieces: Sequence[TextPiece],
    kept_pieces: PieceFolder,
    max_processes: int | None = None,
) -> None:
    """Translate the pieces of a text that an earlier process has not finished.

    A note tells the user how many pieces are finished, and which ones cannot be used.

    Args:
        translation: The text, and how it is translated.
        pieces: The pieces of the text that this process, or those that it starts, translate.
        kept_pieces: The folder of finished pieces.
        max_processes: The highest number of processes; None for one per GPU or core.
    """
    name = translation.name
    unfinished = []
    numbers_by_problem: dict[str, list[int]] = {}
    for piece in pieces:
        problem = kept_pieces.find_problem(piece)
        if problem is not None:
            unfinished.append(piece)
            numbers_by_problem.setdefault(problem, []).append(piece.number)
    numbers_by_problem.pop(MISSING, None)
    # One note for each problem: with another model, no piece of a long text can be used.
    for problem, numbers in numbers_by_problem.items():
        message = f"{name}: piece {numbers[0]} {problem}. It is translated again"
        if len(numbers) > 1:
            message += f" with {counted(len(numbers) - 1, 'other piece')} of the same kind"
        print_message(message, "note")
    if not unfinished:
        return
    finished_count = len(pieces) - len(unfinished)
    if finished_count:
        total = counted(len(pieces), "piece")
        print_message(f"{name}: {finished_count:,} of {total} are translated already", "note")
    line_count = sum(piece.line_count for piece in pieces)
    unfinished_line_count = sum(piece.line_count for piece in unfinished)
    with Progress(
        label=f"translate {name}",
        total=line_count,
        unit="pairs",
        start=line_count - unfinished_line_count,
    ) as progress:
        translate_pieces(translation.load, unfinished, kept_pieces, progress, max_processes)


def _join_pieces(translation: _Translation, folders: Sequence[PieceFolder], remedy: str) -> None:
    """Join the translated pieces of a text, and write the synthetic text.

    Args:
        translation: The text, and how it is translated.
        folders: For each piece of the text, the folder with its translation.
        remedy: What to do about a piece that cannot be used, for the message.

    Raises:
        UserError: A piece is missing, damaged, or was translated by another model; or all
            translations are empty.
    """
    pieces = translation.pieces
    lines_of_pieces = []
    for piece, folder in zip(pieces, folders, strict=True):
        problem = folder.find_problem(piece)
        if problem is not None:
            total = len(pieces)
            raise UserError(
                f"{translation.name}: piece {piece.number} of {total} {problem}. {remedy}"
            )
        lines_of_pieces.append(folder.read(piece))
    corpus_name = translation.synthetic.part_of
    with atomic_folder(synthetic_folder(corpus_name, translation.name)) as partial_folder:
        write_synthetic_pairs(
            translation.text,
            translations=chain.from_iterable(lines_of_pieces),
            output=translation.text.with_path(partial_folder),
            is_source=translation.is_source,
            tag=translation.tag,
        )
    shutil.rmtree(translation.kept_folder, ignore_errors=True)


class PieceSampler(Sampler):
    """Gives each sentence of a piece its own random numbers, for sampling its translation.

    The numbers depend on the piece and not on the sentences before it, which other processes
    translate.
    """

    def __init__(self, seed: str, top_k: int | None) -> None:
        """Start at the first piece of a text.

        Args:
            seed: Any text, from which the random numbers are computed.
            top_k: From how many of the most probable tokens to draw; None draws from all.
        """
        super().__init__(seed, top_k)
        self._seed_of_text = seed

    def begin_piece(self, piece: TextPiece) -> None:
        """Go to the first sentence of a piece of the text.

        Args:
            piece: The piece that is translated next.
        """
        self._next_sentence = 0
        self._seed = self._seed_of_text
        # The first piece has the seed of the text. So a text of one piece gets the same random
        # numbers as a text that is not cut into pieces.
        if piece.number > 1:
            self._seed = f"{self._seed_of_text} piece {piece.number}"


def translate_piece(
    translator: Translator,
    text: TextFolder,
    piece: TextPiece,
    is_source: bool,
    change: Callable[[str, int], str],
    advance: Advance,
) -> list[str]:
    """Translate the lines of a piece of a monolingual text.

    Args:
        translator: Translates the lines.
        text: The text, as a parallel text of which one side has only empty lines.
        piece: The piece.
        is_source: Whether the translations are the source side, so that the lines are the target
            side.
        change: A function that is applied to each translation, for example to add noise. It gets
            the translation and the number of the line in the text, counted from 0.
        advance: A function that is called after each block of lines with their number.

    Returns:
        The translation of each line.
    """
    translations = list[str]()
    # The text is read and translated in blocks of 1,000 lines.
    for block in text.blocks("train", piece.start, piece.stop):
        source_lines, target_lines = block.sentences()
        lines = target_lines if is_source else source_lines
        for translated in translator(lines):
            line_number = piece.start + len(translations)
            best_translation = translated.translations[0].text
            translations.append(change(best_translation, line_number))
        advance(len(lines))
    return translations


def _unchanged(sentence: str, line_number: int) -> str:  # noqa: ARG001
    """Return a translation as it is; `translate_piece` calls this if no noise is wanted."""
    return sentence


def write_synthetic_pairs(
    text: TextFolder,
    translations: Iterable[str],
    output: TextFolder,
    is_source: bool,
    tag: str | None,
) -> None:
    """Write the sentences of a monolingual text and their translations as pairs.

    A note tells the user how many translations are empty.

    Args:
        text: The text, as a parallel text of which one side has only empty lines.
        translations: The translation of each line.
        output: The folder to write the pairs to.
        is_source: Whether the translations are the source side of the pairs (back-translation);
            otherwise they are the target side.
        tag: If given, a word that is put before each source sentence, so that a model can tell
            synthetic text from other text (Caswell et al. 2019). Empty sentences stay empty.

    Raises:
        UserError: The text has no lines, or all translations are empty.
    """
    name = text.path.name
    pair_count = 0
    empty_count = 0
    remaining_translations = iter(translations)
    with output.writer("train") as writer:
        for block in text.blocks("train"):
            source_lines, target_lines = block.sentences()
            lines = target_lines if is_source else source_lines
            translations_of_block = islice(remaining_translations, len(lines))
            pairs = []
            for line, translation in zip(lines, translations_of_block, strict=True):
                if not translation.strip():
                    empty_count += 1
                pair = Pair(translation, line) if is_source else Pair(line, translation)
                pairs.append(_with_tag(pair, tag))
            writer.write_lines(*encode_pairs(pairs))
            pair_count += len(pairs)
    if pair_count == 0:
        raise UserError(f"{name}: the text has no lines. Check its file, which params.yaml names")
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


def _sha256_by_file(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by its path relative to the folder."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        # Snakemake writes a file with a time into folders.
        if path.is_file() and path.name != ".snakemake_timestamp":
            hashes[path.relative_to(folder).as_posix()] = sha256_of(path)
    return hashes
