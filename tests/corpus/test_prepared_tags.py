"""A corpus with tags as languages is prepared by the rules and tokenizers of its languages."""

import pytest

from bleuprint.rules import CHECKS
from bleuprint.rules import EDITS as KNOWN_EDITS
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenize
from prepared import prepare

CHECKED = (
    CHECKS["length"](min=1, max=100),
    CHECKS["character_score"](min=0.5),
    CHECKS["terminal_punctuation"](),
    CHECKS["language_id"](min_odds=10.0),
)
# The last pair is in Russian, not in Greek or Turkish; the rules of both languages decide.
PAIRS = [
    *(
        Pair(f"Πού είναι το σπίτι {number};", f"IĞDIR şehrinde {number} numaralı ev nerede?")
        for number in range(20)
    ),
    Pair("Где находится дом номер один?", "Дом номер один находится там?"),
]
TESTS = [Pair("Τι ώρα είναι;", "Saat kaç?")]


@pytest.mark.parametrize("languages", [("el-GR", "tr-Latn"), ("ell_Grek", "tur_Latn")])
def test_a_tag_changes_the_names_of_files_and_nothing_else(tmp_path, languages):
    """Greek questions end in a semicolon, and Turkish has a dotless i: both depend on the language.

    The outputs of all stages are those of `el` and `tr`.
    """
    outputs = {}
    for source, target in (("el", "tr"), languages):
        folder = tmp_path / source
        prepare(
            folder,
            {"train": PAIRS, "valid": TESTS, "test.t": TESTS},
            edits=(KNOWN_EDITS["punctuation"](),),
            checks=CHECKED,
            tokenize=Tokenize(lowercase=True),
            languages=(source, target),
        )
        contents = {}
        for stage in ("filter", "tokens", "binary"):
            for file in (folder / stage).rglob("*"):
                if file.is_file() and file.suffix != ".json":
                    name = str(file.relative_to(folder))
                    name = name.replace(f".{source}", ".el").replace(f".{target}", ".tr")
                    contents[name] = file.read_bytes()
        outputs[source] = contents

    plain_outputs, tagged_outputs = outputs.values()
    assert tagged_outputs == plain_outputs
    assert len(plain_outputs["filter/train.el"].splitlines()) == 20
    assert "ığdır".encode() in plain_outputs["tokens/train.tr"]
