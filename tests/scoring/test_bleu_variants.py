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
from measuring import measure, translated_set
from scoring import sacrebleu

# The options of sacreBLEU's command line that give each variant. If tokens are compared, the files
# contain tokens.
OPTIONS = {
    LOWERCASED: ("-lc", "-l", "en-de"),
    INTL: ("--tokenize", "intl"),
    TOKENS: ("--tokenize", "none", "--force"),
    TOKENIZED: ("--tokenize", "none", "--force"),
    TOKENIZED_LOWERCASED: ("--tokenize", "none", "--force", "-lc"),
    COMPOUND_SPLIT: ("--tokenize", "none", "--force"),
}
NUMBERS = range(40)
# Sentences with compounds, quotation marks, decimals, an ampersand and capital letters.
REFERENCES = [
    f"Die Ost-West-Achse von Haus {number}: „{number % 7},5 % mehr“ & a-b-c als E-Mail."
    for number in NUMBERS
]


def translation_of(number, reference):
    """Change a word in a third of the sentences, and the case of a letter in the others."""
    if number % 3 == 0:
        return reference.replace("Achse", "Linie")
    return reference.replace("Die", "die")


TRANSLATIONS = [
    translation_of(number, reference) for number, reference in zip(NUMBERS, REFERENCES, strict=True)
]


def tokenized_like_no_metric(lines):
    """Split lines into numbers and single characters, unlike the tokenizers of sacreBLEU."""
    return [" ".join(re.findall(r"\d+|\S", line)) for line in lines]


def tokenized_by_sacremoses(lines):
    """Split German lines by Moses, without XML entities."""
    tokenizer = MosesTokenizer("de")
    return [" ".join(tokenizer.tokenize(line, escape=False)) for line in lines]


def split_compounds_by_perl(path):
    """Split the hyphens of a file in place, by the command in get_ende_bleu.sh."""
    program = r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"
    subprocess.run(["perl", "-i", "-ple", program, str(path)], check=True)


def write_compared_lines(path, lines, variant):
    """Write lines in the form in which a variant compares them."""
    if variant == TOKENS:
        lines = tokenized_like_no_metric(lines)
    elif variant in (TOKENIZED, TOKENIZED_LOWERCASED, COMPOUND_SPLIT):
        lines = tokenized_by_sacremoses(lines)
    trees.write_lines(path, lines)
    if variant == COMPOUND_SPLIT:
        split_compounds_by_perl(path)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_has_the_score_and_signature_of_sacrebleus_command_line(tmp_path, variant):
    """Papers compute BLEU in different ways, such as on lower-cased or on tokenized text.

    The expected score is that of sacreBLEU's command line, on files that are prepared as in the
    paper and with the options for this variant.
    """
    write_compared_lines(tmp_path / "references", REFERENCES, variant)
    write_compared_lines(tmp_path / "translations", TRANSLATIONS, variant)
    options = OPTIONS[variant]
    expected = sacrebleu(tmp_path / "references", *options, "-i", tmp_path / "translations")
    translations = TRANSLATIONS
    references = REFERENCES
    if variant == TOKENS:
        # The tokenizer of the corpus separates words at spaces, so it leaves these as they are.
        translations = tokenized_like_no_metric(TRANSLATIONS)
        references = tokenized_like_no_metric(REFERENCES)

    entry = measure(variant, translated_set(translations, references, "de"))

    assert 0 < expected["score"] < 100
    assert entry["value"] == expected["score"]
    assert entry["signature"] == expected["signature"]
    assert entry["units"] == 40


for_each_compound = pytest.mark.parametrize(
    ("tokens", "split_tokens"),
    [
        pytest.param("rich-text format", "rich ##AT##-##AT## text format", id="one hyphen"),
        pytest.param("x - y -a b- --", "x - y -a b- --", id="hyphens alone or at an edge stay"),
        pytest.param(
            "a-b-c-d",
            "a ##AT##-##AT## b-c ##AT##-##AT## d",
            id="matches of one letter do not overlap: b-c stays",
        ),
        pytest.param(
            "aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc", id="matches of longer words"
        ),
        pytest.param("a--b ---", "a ##AT##-##AT## -b - ##AT##-##AT## -", id="several hyphens"),
        pytest.param(
            "über-öl „a-“", "über ##AT##-##AT## öl „a ##AT##-##AT## “", id="not only ASCII"
        ),
    ],
)


@for_each_compound
def test_compounds_are_split_at_hyphens(tokens, split_tokens):
    assert split_compounds(tokens) == split_tokens


@for_each_compound
def test_the_perl_script_of_the_papers_splits_compounds_alike(tmp_path, tokens, split_tokens):
    """Papers on WMT 2014 split compounds by a Perl script before they compute BLEU.

    Another test checks that our code makes `split_tokens` of `tokens`, and this one that Perl does.
    """
    path = tmp_path / "text"
    trees.write_lines(path, [tokens])

    split_compounds_by_perl(path)

    assert path.read_text("utf-8") == f"{split_tokens}\n"


def test_moses_tokens_keep_hyphens_and_signs():
    """They become neither tokens of their own nor XML entities such as &amp; and &lt;."""
    assert moses_tokenized(["A-b & c's „<d>“.", ""], "de") == ["A-b & c ' s „ < d > “ .", ""]


@pytest.fixture(params=[("zho", "zh"), ("th", "char")], ids=["Chinese", "Thai"])
def unspaced_language(request):
    """Return the code of a language without spaces, and sacreBLEU's tokenizer for it."""
    return request.param


def texts_without_spaces(language):
    """Return references without spaces, and translations: the references in another order."""
    references = [f"我们在{number}月学习机器翻译。" for number in range(9)]
    return translated_set(references[::-1], references, language)


def test_languages_without_spaces_have_no_variants_with_moses_tokens(unspaced_language):
    """Moses, the tokenizer of many papers, splits text at spaces, which Chinese and Thai lack."""
    language, _tokenizer = unspaced_language
    texts = texts_without_spaces(language)

    computed_variants = []
    for variant in VARIANTS:
        if METRICS[variant].count(texts) is not None:
            computed_variants.append(variant)

    assert computed_variants == [LOWERCASED, INTL, TOKENS]


def test_lower_cased_bleu_has_sacrebleus_tokenizer_for_the_language(unspaced_language):
    """Chinese has a tokenizer of its own, `zh`; Thai is split into characters, `char`."""
    language, tokenizer = unspaced_language

    entry = measure(LOWERCASED, texts_without_spaces(language))

    assert f"case:lc|eff:no|tok:{tokenizer}|" in entry["signature"]


@pytest.mark.parametrize(
    ("tokenizer_name", "tokens"),
    [
        ("spacy", "The <unk> does n't see Ann 's <unk> , <unk> or ( <unk> ) ."),
        ("moses", "The <unk> doesn 't see Ann 's <unk> , <unk> or ( <unk> ) ."),
        ("none", "the <unk> , and <unk> ."),
        ("characters", "A ▁ <unk> d d <unk> <unk> ."),
    ],
)
def test_the_token_for_an_unknown_word_stays_one_token(tokenizer_name, tokens):
    """A model may write <unk> in its translation, and BLEU of tokens splits the translation again.

    Tokenizers would make three tokens of it, `<`, `unk` and `>`, and change the score.
    """
    settings = Tokenize(tokenizer_name, lowercase=False, hyphens=False, escape=False)
    tokenizer = tokenizer_for("en", settings)
    translation = tokenizer.detokenize(tokens.split())

    (tokens_of_translation,) = corpus_tokens([translation], tokenizer)

    assert tokens_of_translation == tokens
