"""The vocabularies of Marian models of Hugging Face, such as OPUS-MT.

vocab.json maps tokens to ids. The tokens are pieces of two SentencePiece models, source.spm and
target.spm, and three special tokens. Both languages share vocab.json, or the target language has
target_vocab.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from bleuprint.dataset.subwords.segmentation import MODEL, SEGMENTATION_FILE
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, SPECIALS, UNK, Vocabulary
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.json_files import read_json_object, write_json
from bleuprint.runtime.regular_files import read_bytes

# The files of a folder.
SOURCE_VOCABULARY = "vocab.json"
TARGET_VOCABULARY = "target_vocab.json"
SIDES = ("source", "target")
# The tokens of Marian that have a special meaning.
_PADDING = "<pad>"
_END = "</s>"
_UNKNOWN = "<unk>"
_REMEDY = "Get an intact copy of its folder"


@dataclass(frozen=True)
class MarianVocabulary:
    """The vocabulary of one language of a Marian model.

    Attributes:
        vocabulary: The same tokens as a vocabulary of ours.
        marian_ids: For each id in ours, the id in the Marian model. Marian has no BOS: decoding
            starts from its padding, so both PAD and BOS have the id of padding.
    """

    vocabulary: Vocabulary
    marian_ids: list[int]

    @property
    def pad_id(self) -> int:
        """The id of padding in the Marian model."""
        return self.marian_ids[BOS]

    @property
    def eos_id(self) -> int:
        """The id of the end of a sentence in the Marian model."""
        return self.marian_ids[EOS]

    @classmethod
    def read(cls, path: Path, size: int) -> "MarianVocabulary":
        """Read a vocabulary of a Marian model.

        Args:
            path: The file vocab.json or target_vocab.json.
            size: The number of tokens that the model has.

        Raises:
            UserError: The file is missing or damaged, or has another number of tokens.
        """
        ids = read_json_object(path, (_END, _UNKNOWN, _PADDING), _REMEDY)
        _check_ids(path, ids)
        if len(ids) != size:
            raise UserError(
                f"{path} has {len(ids):,} tokens, but the model in config.json has {size:,}. Get "
                "both files from the same model"
            )
        ordinary_ids = dict(ids)
        special_ids = [ordinary_ids.pop(token) for token in (_PADDING, _END, _UNKNOWN)]
        pad_id, eos_id, unknown_id = special_ids
        tokens = sorted(ordinary_ids, key=ordinary_ids.__getitem__)
        marian_ids = [pad_id, pad_id, eos_id, unknown_id]
        marian_ids += [ordinary_ids[token] for token in tokens]
        # How often the tokens occurred in the training text is not known.
        return cls(Vocabulary((token, 0) for token in tokens), marian_ids)


def _check_ids(path: Path, ids: Mapping[str, object]) -> None:
    """Check that tokens have the ids from 0 on, and that no token contains a line break.

    Args:
        path: The file of the vocabulary, for messages.
        ids: The ids by token.

    Raises:
        DamagedFile: An id is missing or occurs twice, or a token contains a line break.
    """
    for token, token_id in ids.items():
        if not isinstance(token_id, int) or isinstance(token_id, bool):
            raise DamagedFile(path, f"the id of {token!r} is not a whole number", _REMEDY)
        if "\n" in token:
            raise DamagedFile(path, f"token {token!r} contains a line break", _REMEDY)
    if sorted(ids.values()) != list(range(len(ids))):  # type: ignore[type-var]
        problem = f"its {len(ids):,} tokens do not have the ids 0 to {len(ids) - 1:,}"
        raise DamagedFile(path, problem, _REMEDY)


def has_separate_vocabularies(folder: Path) -> bool:
    """Return whether the languages of a Marian model have a vocabulary each.

    Args:
        folder: The folder of the model, with tokenizer_config.json, which may be missing.
    """
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return False
    return read_json_object(path, remedy=_REMEDY).get("separate_vocabs") is True


def copy_segmentation(folder: Path, vocabularies: Mapping[str, Vocabulary], output: Path) -> None:
    """Write the vocabularies and SentencePiece models of a Marian model in our format.

    Writes segmentation.json, and vocabulary.SIDE and sentencepiece.SIDE for source and target.

    Args:
        folder: The folder of the Marian model.
        vocabularies: The vocabularies by side, `source` and `target`.
        output: The folder to write into.

    Raises:
        UserError: A SentencePiece model is missing or damaged.
    """
    is_joint = vocabularies["source"].tokens == vocabularies["target"].tokens
    for side in SIDES:
        path = folder / f"{side}.spm"
        if not path.is_file():
            raise UserError(f"{path}: no such file. {_REMEDY}")
        model = read_bytes(path)
        try:
            SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError):
            raise DamagedFile(path, "SentencePiece cannot read it", _REMEDY) from None
        (output / f"{MODEL}.{side}").write_bytes(model)
        vocabularies[side].write(output / f"vocabulary.{side}")
    write_json(output / SEGMENTATION_FILE, {"kind": "sentencepiece", "joint": is_joint})


@dataclass(frozen=True)
class ExportedVocabulary:
    """A vocabulary of ours in the order of a Marian model.

    Attributes:
        ids: The tokens and their ids in the Marian model, as vocab.json contains them.
        our_ids: For each id in the Marian model, the id in our vocabulary.
    """

    ids: dict[str, int]
    our_ids: list[int]

    @property
    def pad_id(self) -> int:
        """The id of padding in the Marian model."""
        return self.ids[_PADDING]

    @property
    def eos_id(self) -> int:
        """The id of the end of a sentence in the Marian model."""
        return self.ids[_END]

    @property
    def unknown_id(self) -> int:
        """The id of unknown tokens in the Marian model."""
        return self.ids[_UNKNOWN]

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary, is_joint: bool) -> "ExportedVocabulary":
        """Give the tokens of a vocabulary the ids that they have in a Marian model.

        As in OPUS-MT, the end of a sentence is first and padding is last. Two vocabularies may have
        different sizes, but have one id of padding: then it is third.

        Args:
            vocabulary: The vocabulary.
            is_joint: Whether both languages share it.

        Raises:
            UserError: A token of the text is spelled like one of Marian's special tokens.
        """
        specials = {_END: EOS, _UNKNOWN: UNK, _PADDING: BOS}
        ordinary_ids = list(range(len(SPECIALS), len(vocabulary)))
        our_ids = [EOS, UNK]
        if is_joint:
            our_ids += ordinary_ids
            our_ids.append(BOS)
        else:
            our_ids.append(BOS)
            our_ids += ordinary_ids
        names = {our_id: name for name, our_id in specials.items()}
        ids = {}
        for marian_id, our_id in enumerate(our_ids):
            token = names.get(our_id, vocabulary.tokens[our_id])
            if token in ids:
                raise UserError(
                    f"the Marian format cannot describe a vocabulary with the token {token} of the "
                    "text, which is one of its special tokens"
                )
            ids[token] = marian_id
        return cls(ids, our_ids)
