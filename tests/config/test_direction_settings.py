"""The settings of a corpus with several translation directions: valid ones, and messages."""

import re

import pytest

from bleuprint.config.corpus import Split
from bleuprint.config.directions import target_languages_by_tag
from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserError
from params import PARAMS, replace_once
from root import ROOT

SEVERAL_DIRECTIONS = """\
  many:
    from: phrasebook
    directions:
      en-de: {}
      de-en: {files: {train: {phrasebook: {pairs: 30}}}}
      en-fr: {}
      de-fr: {zero_shot: true}
    split: {temperature: 5}
    vocabulary: {bpe: {num_merges: 10}}
"""
# Like the direction de-en of the corpus `many`.
ONE_PAIR = """\
  one:
    from: phrasebook
    source: de
    target: en
    files: {train: {phrasebook: {pairs: 30}}}
    vocabulary: {bpe: {num_merges: 10}}
"""


def write_corpora(folder, corpora, after_corpora=""):
    """Write a params.yaml with these corpora after its own one.

    Args:
        folder: Where to write it.
        corpora: The corpora, as YAML.
        after_corpora: Other sections, as YAML.

    Returns:
        The path of params.yaml.
    """
    path = folder / "params.yaml"
    path.write_text(replace_once(PARAMS, "systems:\n", f"{corpora}{after_corpora}systems:\n"))
    return path


def read_corpora(folder, corpora, after_corpora=""):
    """Write a params.yaml with these corpora after its own one, and return its settings."""
    return load_settings(write_corpora(folder, corpora, after_corpora), ROOT)


def corpora_error(folder, corpora, after_corpora=""):
    """Return the message with which reading a params.yaml with these corpora must end."""
    path = write_corpora(folder, corpora, after_corpora)
    with pytest.raises(UserError) as error:
        load_settings(path, ROOT)
    return str(error.value)


def test_a_direction_is_a_corpus_of_one_language_pair(tmp_path):
    settings = read_corpora(tmp_path, ONE_PAIR + SEVERAL_DIRECTIONS)

    assert settings.corpus("many/de-en") == settings.corpus("one")


def test_the_texts_of_a_direction_are_named_after_it(tmp_path):
    """The corpus `many` trains en-de, de-en and en-fr on the text `phrasebook`.

    A fourth direction, de-fr, is zero-shot: it has no training text.
    """
    files = read_corpora(tmp_path, SEVERAL_DIRECTIONS).corpus("many").files

    trained_texts = ["en-de-phrasebook", "de-en-phrasebook", "en-fr-phrasebook"]
    assert list(files.train) == trained_texts
    assert list(files.valid) == trained_texts


def test_a_zero_shot_direction_has_only_test_sets(tmp_path):
    """A system is tested on a zero-shot direction without having trained on it.

    In the corpus `many` this is de-fr; the other three directions are trained.
    """
    files = read_corpora(tmp_path, SEVERAL_DIRECTIONS).corpus("many").files

    trained_texts = ["en-de-phrasebook", "de-en-phrasebook", "en-fr-phrasebook"]
    assert list(files.train) == trained_texts
    assert list(files.tests) == [*trained_texts, "de-fr-phrasebook"]


def test_a_test_set_has_the_languages_of_its_direction(tmp_path):
    corpus = read_corpora(tmp_path, SEVERAL_DIRECTIONS).corpus("many")

    assert corpus.language_pair_of_test("de-fr-phrasebook").languages == ("de", "fr")


def test_each_target_language_has_a_tag(tmp_path):
    """The tag before a source sentence tells the model into which language to translate."""
    corpus = read_corpora(tmp_path, SEVERAL_DIRECTIONS).corpus("many")

    assert target_languages_by_tag(corpus) == {"<2de>": "de", "<2en>": "en", "<2fr>": "fr"}


def test_each_direction_is_listed_among_the_language_pairs(tmp_path):
    """The corpus `own` has one pair; `many` has three trained directions and a zero-shot one."""
    settings = read_corpora(tmp_path, SEVERAL_DIRECTIONS)

    assert list(settings.language_pairs()) == [
        "own",
        "many/en-de",
        "many/de-en",
        "many/en-fr",
        "many/de-fr",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        pytest.param(
            "      en-fr: {}\n",
            "      en-de: {}\n",
            23,
            'duplicate key "en-de"',
            id="a direction written twice",
        ),
        pytest.param(
            "en-fr: {}",
            "en-en: {}",
            23,
            "not a direction. Write SOURCE-TARGET, two languages such as en-de",
            id="one language on both sides",
        ),
        pytest.param(
            "en-fr: {}",
            "fr: {}",
            23,
            "not a direction. Write SOURCE-TARGET, two languages such as en-de",
            id="one language",
        ),
        pytest.param(
            "en-fr: {}",
            "en-fr:",
            23,
            "is not a mapping. Write {} to use the texts",
            id="no value",
        ),
        pytest.param(
            "en-fr: {}", "en-cs: {}", 23, "the text is not in 'cs'", id="a language without text"
        ),
        pytest.param(
            "en-fr: {}",
            "en-fr: {license_and_citation: MIT}",
            23,
            "'MIT' is not a mapping",
            id="a license that is a word",
        ),
        pytest.param(
            "en-fr: {}",
            "en-fr: {zero_shot: true}",
            23,
            "no direction of the training text has 'fr'",
            id="a target language that is never trained",
        ),
        pytest.param(
            ": true}",
            ": true, files: {tests: {phrasebook: null}}}",
            24,
            "has no test set. Add",
            id="zero-shot without a test set",
        ),
        pytest.param(
            "en-fr: {}",
            "en-fr: {files: {valid: {phrasebook: null}}}",
            23,
            "has no validation set",
            id="no validation set",
        ),
        pytest.param(
            "    directions",
            "    source: en\n    directions",
            20,
            "the directions name the languages. Remove it",
            id="source beside directions",
        ),
    ],
)
def test_a_mistake_in_directions_is_reported_in_one_line(tmp_path, old, new, line, message):
    """The corpus `many` has the directions en-de, de-en, en-fr and, zero-shot, de-fr.

    Each case replaces one place of its settings, which begin in line 19 of params.yaml.
    """
    error = corpora_error(tmp_path, replace_once(SEVERAL_DIRECTIONS, old, new))

    assert "\n" not in error
    assert f"params.yaml:{line}: " in error
    assert message in error


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        pytest.param(
            "{en-de: {zero_shot: true}, de-en: {zero_shot: true}}",
            "Add one without zero_shot",
            id="all zero-shot",
        ),
        pytest.param(
            "{en-de: {}}", "directions: {'en-de': {}} needs at least 2", id="one direction"
        ),
    ],
)
def test_directions_need_two_entries_and_a_trained_one(tmp_path, directions, message):
    """A corpus with one direction would be an ordinary corpus with source and target."""
    before, _, after = SEVERAL_DIRECTIONS.partition("    directions:\n")
    after_directions = after[after.index("    split:") :]

    error = corpora_error(tmp_path, f"{before}    directions: {directions}\n{after_directions}")

    assert message in error


def test_the_text_of_a_corpus_must_be_described_in_the_folder_corpora(tmp_path):
    """`from` takes the name of a file in corpora/, not a path such as ../corpora/phrasebook."""
    corpus = ONE_PAIR.replace("phrasebook", "../corpora/phrasebook", 1)

    error = corpora_error(tmp_path, corpus)

    assert re.search(r"no file .*phrasebook\.yaml; there are: ", error)


WITH_SEGMENTER = SEVERAL_DIRECTIONS.replace(
    "{temperature: 5}", "{temperature: 5}\n    tokenize: {name: segmenter}"
)


def test_a_segmenter_needs_a_language_without_spaces(tmp_path):
    """A segmenter finds the words of languages such as Chinese."""
    error = corpora_error(tmp_path, WITH_SEGMENTER)

    assert "this corpus has en, de and fr. Use moses" in error


def test_only_directions_with_a_language_without_spaces_use_the_segmenter(tmp_path):
    """With tokenize.name segmenter, Chinese (zh) is divided into words by a segmenter.

    The direction en-de of the same corpus uses the Moses tokenizer.
    """
    text = (
        "{a: {license_and_citation: own, source: {path: inputs/a.en}, target: {path: inputs/a.zh}}}"
    )
    english_to_chinese = f"""\
      en-zh:
        from: null
        license_and_citation: {{own: {{license: none, bibtex: "@misc{{own,}}"}}}}
        files: {{train: {text}, valid: {text}, tests: {{x: {text}}}}}
"""
    corpora = replace_once(
        WITH_SEGMENTER, "      en-fr: {}\n", f"      en-fr: {{}}\n{english_to_chinese}"
    )

    corpus = read_corpora(tmp_path, corpora).corpus("many")

    assert corpus.language_pair("many", "en-de").tokenize.name == "moses"
    assert corpus.language_pair("many", "en-zh").tokenize.name == "segmenter"


def test_a_corpus_with_one_direction_has_no_temperature(tmp_path):
    """The temperature sets how often training reads each of several directions."""
    error = corpora_error(tmp_path, f"{ONE_PAIR}    split: {{temperature: 2}}\n")

    assert "split.temperature: only a corpus with directions uses this setting. Remove it" in error


def test_the_split_seed_of_one_pair_has_no_effect_if_all_sets_are_given(tmp_path):
    """DVC compares the effective settings, so a seed without effect prepares nothing again."""
    corpus = read_corpora(tmp_path, f"{ONE_PAIR}    split: {{seed: 7}}\n").corpus("one")

    assert corpus.files.valid
    assert corpus.files.tests
    assert corpus.effective_split().seed == Split.seed


@pytest.mark.parametrize(
    "share_of_valid",
    [
        pytest.param("valid: 0.2", id="a share of the text"),
        pytest.param("valid: 0, every: 20", id="every 20th pair"),
    ],
)
def test_a_share_for_validation_has_no_effect_if_the_set_is_given(tmp_path, share_of_valid):
    """The corpus has a file for validation. So DVC does not see how a set would be drawn."""
    corpus = read_corpora(tmp_path, f"{ONE_PAIR}    split: {{{share_of_valid}}}\n").corpus("one")

    assert corpus.files.valid
    assert corpus.split != Split()
    assert corpus.effective_split() == Split()


def test_the_split_seed_of_several_directions_always_has_an_effect(tmp_path):
    """The training text is sampled by the seed, so another seed must prepare the corpus again."""
    corpora = replace_once(
        SEVERAL_DIRECTIONS, "split: {temperature: 5}", "split: {temperature: 5, seed: 7}"
    )

    corpus = read_corpora(tmp_path, corpora).corpus("many")

    assert corpus.files.valid
    assert corpus.files.tests
    assert corpus.effective_split().seed == 7


# A corpus with the directions en-de and de-en.
FEWER_DIRECTIONS = "  fewer: {like: many, directions: {en-fr: null, de-fr: null}}\n"


def test_a_corpus_may_use_the_vocabulary_of_a_corpus_with_more_languages(tmp_path):
    """The corpus `fewer` has two of the four directions of `many`: en-de and de-en."""
    settings = read_corpora(
        tmp_path,
        ONE_PAIR + SEVERAL_DIRECTIONS + FEWER_DIRECTIONS,
        after_corpora="vocabularies: {fewer: many}\n",
    )

    assert settings.corpus("fewer").vocabulary.shared_from == "many"


@pytest.mark.parametrize(
    ("vocabularies", "message"),
    [
        pytest.param(
            "{many: fewer}",
            r"vocabularies.many: the vocabulary of fewer does not cover to fr\. Name",
            id="a target language is missing",
        ),
        pytest.param(
            "{one: many}",
            r"vocabularies.one: the vocabulary of many does not cover de, en\. Name",
            id="tags that one pair does not use",
        ),
        pytest.param(
            "{many: one}",
            "vocabularies.many: the vocabulary of one does not cover from de, from en, to de, to",
            id="tags are missing",
        ),
    ],
)
def test_a_vocabulary_that_lacks_languages_or_tags_of_a_corpus_is_refused(
    tmp_path, vocabularies, message
):
    """`fewer: many` means: the corpus `fewer` uses the vocabulary of `many`.

    `many` translates between en, de and fr, `fewer` between en and de, each with tags for the
    target language; `one` translates de to en without tags.
    """
    error = corpora_error(
        tmp_path,
        ONE_PAIR + SEVERAL_DIRECTIONS + FEWER_DIRECTIONS,
        after_corpora=f"vocabularies: {vocabularies}\n",
    )

    assert re.search(message, error)
