"""BLEU variants equal the scores of sacreBLEU's command line on the files of their description."""

import re
import subprocess

import pytest
from sacremoses import MosesTokenizer

import result_trees as trees
from bleuprint.scoring.bleu_variants import (
    COMPOUND_SPLIT,
    INTL,
    LOWERCASED,
    TOKENIZED,
    TOKENIZED_LOWERCASED,
    TOKENS,
    VARIANTS,
    corpus_tokens,
    moses_tokenized,
    split_compounds,
)
from bleuprint.scoring.metrics import METRICS
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from measuring import measure, texts_of
from scoring import sacrebleu

OPTIONS = {
    LOWERCASED: ("-lc", "-l", "en-de"),
    INTL: ("--tokenize", "intl"),
    TOKENS: ("--tokenize", "none", "--force"),
    TOKENIZED: ("--tokenize", "none", "--force"),
    TOKENIZED_LOWERCASED: ("--tokenize", "none", "--force", "-lc"),
    COMPOUND_SPLIT: ("--tokenize", "none", "--force"),
}
REFERENCES = [
    f"Die Ost-West-Achse von Haus {i}: „{i % 7},5 % mehr“ & a-b-c als E-Mail." for i in range(40)
]
GOOD = [
    line.replace("Die", "die") if i % 3 else line.replace("Achse", "Linie")
    for i, line in enumerate(REFERENCES)
]


def words_of_digits(lines):
    """Tokens of a tokenizer that is none of sacreBLEU's: a character, but for words of digits."""
    return [" ".join(re.findall(r"\d+|\S", line)) for line in lines]


def perl(path):
    """Split the hyphens of a file in place, by the command that get_ende_bleu.sh has."""
    program = r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"
    subprocess.run(["perl", "-i", "-ple", program, str(path)], check=True)


@pytest.mark.parametrize("way", VARIANTS)
def test_scores_equal_the_command_line(tmp_path, way):
    files = tmp_path / "references", tmp_path / "hypotheses"
    for path, lines in zip(files, (REFERENCES, GOOD), strict=True):
        if way == TOKENS:
            lines = words_of_digits(lines)
        elif way not in (LOWERCASED, INTL):
            library = MosesTokenizer("de")
            lines = [" ".join(library.tokenize(line, escape=False)) for line in lines]
        trees.write_lines(path, lines)
        if way == COMPOUND_SPLIT:
            perl(path)
    ours = measure(way, texts_of(GOOD, REFERENCES, "de"))
    if way == TOKENS:  # the corpus's tokenizer leaves these as they are
        ours = measure(way, texts_of(*map(words_of_digits, (GOOD, REFERENCES)), "de"))
    theirs = sacrebleu(files[0], *OPTIONS[way], "-i", files[1])
    assert 0 < theirs["score"] < 100
    assert (ours["value"], ours["signature"]) == (theirs["score"], theirs["signature"])
    assert ours["units"] == 40


@pytest.mark.parametrize(
    ("tokens", "split"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        # a hyphen at the edge of a word, or alone, stays
        ("x - y -a b- --", "x - y -a b- --"),
        # no overlap: of a-b-c the b is taken
        ("a-b-c-d", "a ##AT##-##AT## b-c ##AT##-##AT## d"),
        ("aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc"),
        ("a--b ---", "a ##AT##-##AT## -b - ##AT##-##AT## -"),
        ("über-öl „a-“", "über ##AT##-##AT## öl „a ##AT##-##AT## “"),
    ],
)
def test_compounds_are_split_as_perl_does(tmp_path, tokens, split):
    assert split_compounds(tokens) == split
    trees.write_lines(tmp_path / "text", [tokens])
    perl(tmp_path / "text")
    assert (tmp_path / "text").read_text("utf-8") == f"{split}\n"


def test_moses_tokens_keep_hyphens_and_signs():
    assert moses_tokenized(["A-b & c's „<d>“.", ""], "de") == ["A-b & c ' s „ < d > “ .", ""]


def test_no_moses_tokens_where_the_headline_has_others():
    references = [f"我们在{i}月学习机器翻译。" for i in range(9)]
    for language, tokenizer in (("zho", "zh"), ("th", "char")):
        texts = texts_of(references[::-1], references, language)
        counted = [name for name in VARIANTS if METRICS[name].count(texts) is not None]
        assert counted == [LOWERCASED, INTL, TOKENS]
        assert f"case:lc|eff:no|tok:{tokenizer}|" in measure(LOWERCASED, texts)["signature"]


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("spacy", "The <unk> does n't see Ann 's <unk> , <unk> or ( <unk> ) ."),
        ("moses", "The <unk> doesn 't see Ann 's <unk> , <unk> or ( <unk> ) ."),
        ("none", "the <unk> , and <unk> ."),
        ("characters", "A ▁ <unk> d d <unk> <unk> ."),
    ],
)
def test_an_unknown_token_stays_one_token(name, tokens):
    tokenizer = tokenizer_for("en", Tokenize(name, lowercase=False, hyphens=False, escape=False))
    sentence = tokenizer.detokenize(tokens.split())
    assert corpus_tokens([sentence], tokenizer) == [tokens]
