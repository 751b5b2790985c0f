"""A corpus of several directions: what params.yaml says of it, and what is refused."""

import re

import pytest

from bleuprint.config.corpus import Split
from bleuprint.config.directions import target_languages_by_tag
from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import UserError
from params import PARAMS, read
from root import ROOT

MANY = """\
  many:
    from: phrasebook
    directions:
      en-de: {}
      de-en: {files: {train: {phrasebook: {pairs: 30}}}}
      en-fr: {}
      de-fr: {zero_shot: true}
    split: {temperature: 5}
    vocabulary: {bpe: {num_merges: 10}}
systems:
"""
ONE = """\
  one:
    from: phrasebook
    source: de
    target: en
    files: {train: {phrasebook: {pairs: 30}}}
    vocabulary: {bpe: {num_merges: 10}}
"""


def with_many(folder, many=MANY):
    path = folder / "params.yaml"
    path.write_text(PARAMS.replace("systems:\n", many))
    return load_settings(path, ROOT)


def test_each_direction_is_the_corpus_of_its_pair(tmp_path):
    settings = with_many(tmp_path)
    assert settings.corpus("many/de-en") == with_many(tmp_path, ONE + MANY).corpus("one")
    many = settings.corpus("many")
    assert [*many.files.train] == [f"{each}-phrasebook" for each in ("en-de", "de-en", "en-fr")]
    assert [*many.files.valid] == [*many.files.train]
    assert [*many.files.tests] == [*many.files.train, "de-fr-phrasebook"]
    assert many.language_pair_of_test("de-fr-phrasebook").languages == ("de", "fr")
    tags = {"<2de>": "de", "<2en>": "en", "<2fr>": "fr"}
    assert target_languages_by_tag(many) == tags
    assert [*settings.language_pairs()] == [
        "own",
        "many/en-de",
        "many/de-en",
        "many/en-fr",
        "many/de-fr",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("      en-fr: {}\n", "      en-de: {}\n", 23, 'duplicate key "en-de"'),
        ("en-fr: {}", "en-en: {}", 23, "a direction is SOURCE-TARGET, two languages such as en-de"),
        ("en-fr: {}", "fr: {}", 23, "a direction is SOURCE-TARGET, two languages such as en-de"),
        ("en-fr: {}", "en-fr:", 23, "is not a mapping; write {} to use the texts"),
        ("en-fr: {}", "en-cs: {}", 23, "has no text in 'cs'"),
        ("en-fr: {}", "en-fr: {license_and_citation: MIT}", 23, "'MIT' is not a mapping"),
        ("en-fr: {}", "en-fr: {zero_shot: true}", 23, "no direction of the training text has 'fr'"),
        (": true}", ": true, files: {tests: {phrasebook: null}}}", 24, "has no test set: needs"),
        ("en-fr: {}", "en-fr: {files: {valid: {phrasebook: null}}}", 23, "has no validation set"),
        ("    directions", "    source: en\n    directions", 20, "remove it: the directions name"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, old, new, line, message):
    assert MANY.count(old) == 1
    with pytest.raises(UserError) as error:
        with_many(tmp_path, MANY.replace(old, new))
    lines = str(error.value).splitlines()
    assert message in lines[0]
    assert f"params.yaml:{line}: " in lines[0]
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        ("{en-de: {zero_shot: true}, de-en: {zero_shot: true}}", "add one that is not"),
        ("{en-de: {}}", "directions: {'en-de': {}} needs at least 2"),
    ],
)
def test_directions_are_several_and_one_is_trained(tmp_path, directions, message):
    begin, end = MANY.partition("    directions:\n")[0], MANY[MANY.index("    split:") :]
    with pytest.raises(UserError, match=re.escape(message)):
        with_many(tmp_path, f"{begin}    directions: {directions}\n{end}")


def test_a_corpus_is_described_in_corpora_alone(tmp_path):
    with pytest.raises(UserError, match=r"no file .*phrasebook\.yaml; there are: "):
        with_many(tmp_path, ONE.replace("phrasebook", "../corpora/phrasebook", 1) + "systems:\n")


def test_a_segmenter_is_for_the_directions_that_have_one(tmp_path):
    text = MANY.replace("{temperature: 5}", "{temperature: 5}\n    tokenize: {name: segmenter}")
    with pytest.raises(UserError, match="this corpus has en, de and fr: use moses"):
        with_many(tmp_path, text)
    own = '{license: none, bibtex: "@misc{own,}"}'
    sides = "source: {path: inputs/a.en}, target: {path: inputs/a.zh}"
    part = f"{{a: {{license_and_citation: own, {sides}}}}}"
    sets = f"train: {part}, valid: {part}, tests: {{x: {part}}}"
    files = f"{{from: null, license_and_citation: {{own: {own}}}, files: {{{sets}}}}}"
    corpus = with_many(
        tmp_path, text.replace("en-fr: {}", f"en-fr: {{}}\n      en-zh: {files}")
    ).corpus("many")
    names = [corpus.language_pair("many", each).tokenize.name for each in ("en-de", "en-zh")]
    assert names == ["moses", "segmenter"]


def test_a_temperature_is_for_several_directions(tmp_path):
    with pytest.raises(
        UserError, match=r"split.temperature: 2.0: only for a corpus with directions; remove it"
    ):
        read(tmp_path, PARAMS.replace("test: 0.05, seed: 1", "test: 0.05, seed: 1, temperature: 2"))


def test_the_seed_of_several_directions_is_used_though_all_sets_are_given(tmp_path):
    """The training text is sampled by the seed, so another seed must prepare the corpus again."""
    seeded = MANY.replace("split: {temperature: 5}", "split: {temperature: 5, seed: 7}")
    one_seeded = f"{ONE}    split: {{seed: 7}}\n"
    settings = with_many(tmp_path, one_seeded + seeded)
    several_directions = settings.corpus("many")
    one_direction = settings.corpus("one")
    for corpus in (several_directions, one_direction):
        assert corpus.files.valid
        assert corpus.files.tests
    assert several_directions.effective_split().seed == 7
    assert one_direction.effective_split().seed == Split.seed


@pytest.mark.parametrize(
    ("shared", "message"),
    [
        ("{fewer: many}", None),
        ("{many: fewer}", "vocabularies.many: fewer, whose .* does not translate to fr$"),
        ("{one: many}", "vocabularies.one: many, whose .* does not translate de, en$"),
        ("{many: one}", "vocabularies.many: one, whose .* translate from de, from en, to de, to"),
    ],
)
def test_a_vocabulary_has_the_languages_and_tags(tmp_path, shared, message):
    fewer = "  fewer: {like: many, directions: {en-fr: null, de-fr: null}}\n"
    text = f"{ONE}{MANY.replace('systems:', fewer + f'vocabularies: {shared}')}\nsystems:\n"
    if message is None:
        assert with_many(tmp_path, text).corpus("fewer").vocabulary.of == "many"
        return
    with pytest.raises(UserError, match=message):
        with_many(tmp_path, text)
