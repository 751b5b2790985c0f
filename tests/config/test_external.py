"""External systems: what params.yaml may say of them."""

import pytest

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import all_runs, scored_runs, settings_sha256, trained_runs
from bleuprint.runtime.errors import UserError
from params import PARAMS, read, write_resolved

ONLINE = f"""\
  online-a:
    about: "system A, 3 May"
    translations:
      held-out: {{path: inputs/external/a.no, sha256: {64 * "a"}}}
"""
TEXT = PARAMS.replace("published: []\n", ONLINE)
SECOND_CORPUS = "  more: {like: own, split: {seed: 2}}\nsystems:\n"
# The line of its name in params.yaml.
LINE = TEXT[: TEXT.index(ONLINE)].count("\n") + 1
TWO_CORPORA = TEXT.replace("systems:\n", SECOND_CORPUS)


def test_an_external_system_has_files_and_no_model(tmp_path):
    settings = read(tmp_path, TEXT)
    system = settings.external_systems_on("own")["online-a"]
    assert system.about == "system A, 3 May"
    assert system.translations["held-out"].path == "inputs/external/a.no"
    assert settings.trained_systems == ["base"]
    with pytest.raises(UserError, match="online-a is an external system, without a model here"):
        settings.system_on("online-a", "own")


def test_it_is_scored_once_whatever_the_number_of_seeds(tmp_path):
    settings = read(tmp_path, TEXT.replace("seeds: [1]", "seeds: [3, 1]"))
    trained = [Run("base", "own", 3), Run("base", "own", 1)]
    assert trained_runs(settings) == trained
    assert scored_runs(settings) == [*trained, Run("online-a", "own", 3)]
    assert settings.stage("score", "online-a", "own", 1) == "score@online-a-own-3"


def test_the_table_has_its_scores_beside_each_seed(tmp_path):
    settings = read(tmp_path, TEXT.replace("seeds: [1]", "seeds: [3, 1]"))
    assert all_runs(settings)[2:] == [Run("online-a", "own", 3), Run("online-a", "own", 1)]


def test_stages_read_the_same_settings(tmp_path):
    settings = read(
        tmp_path, TWO_CORPORA.replace("    about", "    corpora: {more: {}}\n    about")
    )
    write_resolved(tmp_path)
    assert load_resolved_settings(tmp_path) == settings
    assert settings.external_systems_on("own") == {}


def test_each_section_has_a_value_for_dvc(tmp_path):
    runs = read(tmp_path, TEXT).resolved()["runs"]
    external = runs["online-a"]["own"]
    assert [external[section] for section in ("model", "train", "average", "decode")] == 4 * [False]
    assert external["arithmetic"] is False
    assert runs["base"]["own"]["translations"] is False


def test_it_may_have_other_files_on_each_corpus(tmp_path):
    own_files = f"translations: {{held-out: {{path: inputs/external/b.no, sha256: {64 * 'b'}}}}}"
    corpora = f"    corpora: {{own: {{}}, more: {{{own_files}}}}}\n    about"
    settings = read(tmp_path, TWO_CORPORA.replace("    about", corpora))
    paths = {
        corpus: settings.external_systems_on(corpus)["online-a"].translations["held-out"].path
        for corpus in ("own", "more")
    }
    assert paths == {"own": "inputs/external/a.no", "more": "inputs/external/b.no"}


def test_settings_of_systems_are_known_by_the_same_fingerprint_without(tmp_path):
    run = Run("base", "own", 1)
    before = settings_sha256(read(tmp_path), run)
    settings = read(tmp_path, TEXT)
    assert settings_sha256(settings, run) == before
    row = settings_sha256(settings, Run("online-a", "own", 1))
    other = read(tmp_path, TEXT.replace(64 * "a", 64 * "b"))
    assert len({before, row, settings_sha256(other, Run("online-a", "own", 1))}) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "held-out:",
            "news:",
            f":{LINE + 3}: systems.online-a.translations.news: own has no such test set",
        ),
        (
            "external/a.no",
            "a.no",
            f":{LINE + 3}: systems.online-a.translations.held-out: path is 'inputs/a.no'",
        ),
        ("external/a.no", "external/../a.no", "files must be below inputs/external/"),
        ("system A, 3 May", "", f":{LINE + 1}: systems.online-a.about: '' is blank"),
        ("system A, 3 May", "  ", f":{LINE + 1}: systems.online-a.about: '  ' is blank: write"),
        ('    about: "system A, 3 May"\n', "", "online-a: the key 'about' is missing"),
        ("    about:", "    abuot: x\n    about:", "abuot: unknown key; did you mean 'about'?"),
        (64 * "a", "x", "sha256: a SHA-256 is 64 hexadecimal digits, lower case, not 'x'"),
        (
            "    about:",
            "    train: {max_updates: 3}\n    about:",
            f":{LINE + 3}: systems.online-a.translations: translations make online-a an external "
            "system, which cannot have train; remove one of them, or the `like` that gives it",
        ),
        (
            "    about:",
            "    like: base\n    about:",
            f":{LINE + 3}: systems.online-a.translations: translations make online-a an external",
        ),
        (
            "    about:",
            "    corpora: {won: {}}\n    about:",
            f":{LINE + 1}: systems.online-a.corpora.won: no such corpus; there are: own",
        ),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path, old, new, message):
    assert TEXT.count(old) == 1
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(old, new))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_translations_that_are_no_mapping_are_refused(tmp_path):
    start = ONLINE.index("    translations")
    wrong = f"{ONLINE[:start]}    translations: [a.no]\n"
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(ONLINE, wrong))
    assert f":{LINE + 2}: systems.online-a.translations: " in str(error.value)
    assert "is not a mapping of names" in str(error.value)


def test_one_system_at_least_is_trained(tmp_path):
    trained = TEXT[TEXT.index("  base:\n") : TEXT.index(ONLINE)]
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(trained, ""))
    message = "systems: all systems are external: add one that is trained here, the baseline"
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("translations", "message"),
    [
        ("translations: {}", "{} needs at least 1 entry"),
        ("translations:", "an empty value is not a mapping of names"),
    ],
)
def test_translations_without_a_file_are_refused(tmp_path, translations, message):
    start = ONLINE.index("    translations")
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(ONLINE, f"{ONLINE[:start]}    {translations}\n"))
    place = f"params.yaml:{LINE + 2}: systems.online-a.translations: "
    assert str(error.value).endswith(f"{place}{message}")


@pytest.mark.parametrize("first", [1, 2])
def test_dvc_is_told_which_seed_stands_for_an_external_system(tmp_path, first):
    """Else its translations would not be copied again for another first seed."""
    assert TEXT.count("seeds: [1]") == 1
    text = TEXT.replace("seeds: [1]", f"seeds: [{first}, 3]")
    settings = read(tmp_path, text)
    written = settings.resolved()["runs"]["online-a"]["own"]["translations"]
    assert written["seed"] == first
    assert list(written["files"]) == ["held-out"]
    write_resolved(tmp_path)
    assert load_resolved_settings(tmp_path) == settings


@pytest.mark.parametrize(
    ("translations", "message"),
    [
        ("", "systems.online-a: the key 'translations' is missing"),
        ("    translation: {}\n", "translation: unknown key; did you mean 'translations'?"),
    ],
)
def test_a_system_with_about_lacks_its_translations(tmp_path, translations, message):
    start = ONLINE.index("    translations")
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(ONLINE, ONLINE[:start] + translations))
    assert message in str(error.value)
    assert "train" not in str(error.value)


def test_a_system_that_starts_from_an_external_one_is_refused(tmp_path):
    tuned = "  tuned:\n    like: base\n"
    init_from = "init_from:\n  tuned: {system: online-a, corpus: own}\n"
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT.replace(ONLINE, ONLINE + tuned) + init_from)
    assert "online-a is an external system, without a model here" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_external_system_that_starts_from_another_is_refused(tmp_path):
    with pytest.raises(UserError) as error:
        read(tmp_path, TEXT + "init_from:\n  online-a: {system: base, corpus: own}\n")
    assert "init_from.online-a: online-a is an external system" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mistake_in_its_corpus_is_the_only_message(tmp_path):
    """A corpus with a mistake is left out, and what needs it is not checked."""
    with pytest.raises(UserError) as error:
        read(tmp_path, TWO_CORPORA + "vocabularies: {own: own}\n")
    line = TWO_CORPORA.count("\n") + 1
    place = f"{tmp_path}/params.yaml:{line}: vocabularies.own: "
    assert str(error.value).startswith(place)
    assert "\n" not in str(error.value)
