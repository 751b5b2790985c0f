"""External systems: their settings in params.yaml, and messages about wrong ones.

An external system has translations made elsewhere, and no model here.
"""

import pytest

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import all_runs, scored_runs, settings_sha256, trained_runs
from bleuprint.runtime.errors import UserError
from params import PARAMS, line_number, params_error, read_params, replace_once, write_resolved

SHA256 = 64 * "a"
ONLINE = f"""\
  online-a:
    about: "system A, 3 May"
    translations:
      held-out: {{path: inputs/external/a.no, sha256: {SHA256}}}
"""
# PARAMS trains the system `base` on the corpus `own`, whose test set is held-out.
PARAMS_WITH_EXTERNAL = replace_once(PARAMS, "published: []\n", ONLINE)
PARAMS_WITH_TWO_CORPORA = replace_once(
    PARAMS_WITH_EXTERNAL, "systems:\n", "  more: {like: own, split: {seed: 2}}\nsystems:\n"
)
# The lines of PARAMS_WITH_EXTERNAL that messages name.
NAME_LINE = line_number(PARAMS_WITH_EXTERNAL, "  online-a:")
ABOUT_LINE = NAME_LINE + 1
TRANSLATIONS_LINE = NAME_LINE + 2
FILE_LINE = NAME_LINE + 3


def test_an_external_system_has_a_description_and_translations(tmp_path):
    system = read_params(tmp_path, PARAMS_WITH_EXTERNAL).external_systems_on("own")["online-a"]

    assert system.about == "system A, 3 May"
    assert system.translations["held-out"].path == "inputs/external/a.no"


def test_an_external_system_is_not_a_trained_system(tmp_path):
    """The translations of `online-a` were made elsewhere; `base` is trained here."""
    settings = read_params(tmp_path, PARAMS_WITH_EXTERNAL)

    assert settings.trained_systems == ["base"]
    with pytest.raises(UserError, match="online-a is an external system, so it has no model"):
        settings.system_on("online-a", "own")


def test_an_external_system_is_scored_only_with_the_first_seed(tmp_path):
    """Its translations are the same for all seeds.

    `base` is trained here, `online-a` is external.
    """
    settings = read_params(
        tmp_path, replace_once(PARAMS_WITH_EXTERNAL, "seeds: [1]", "seeds: [3, 1]")
    )

    trained = [Run("base", "own", 3), Run("base", "own", 1)]
    assert trained_runs(settings) == trained
    assert scored_runs(settings) == [*trained, Run("online-a", "own", 3)]


def test_the_score_stage_of_an_external_system_has_the_first_seed_for_any_seed(tmp_path):
    settings = read_params(
        tmp_path, replace_once(PARAMS_WITH_EXTERNAL, "seeds: [1]", "seeds: [3, 1]")
    )

    assert settings.stage("score", "online-a", "own", 1) == "score@online-a-own-3"


def test_the_results_list_an_external_system_with_each_seed(tmp_path):
    """So `online-a`, which is external, can be compared with each seed of `base`."""
    settings = read_params(
        tmp_path, replace_once(PARAMS_WITH_EXTERNAL, "seeds: [1]", "seeds: [3, 1]")
    )

    assert all_runs(settings) == [
        Run("base", "own", 3),
        Run("base", "own", 1),
        Run("online-a", "own", 3),
        Run("online-a", "own", 1),
    ]


def test_stages_read_the_same_external_system_as_params_yaml_describes(tmp_path):
    """Stages read a JSON file that the stage resolve writes."""
    text = replace_once(PARAMS_WITH_TWO_CORPORA, "    about", "    corpora: {more: {}}\n    about")
    settings = read_params(tmp_path, text)

    write_resolved(tmp_path)

    assert load_resolved_settings(tmp_path) == settings


def test_an_external_system_may_have_translations_for_one_corpus_only(tmp_path):
    """There are two corpora, `own` and `more`; the external system `online-a` lists `more`."""
    text = replace_once(PARAMS_WITH_TWO_CORPORA, "    about", "    corpora: {more: {}}\n    about")

    settings = read_params(tmp_path, text)

    assert settings.external_systems_on("own") == {}
    assert list(settings.external_systems_on("more")) == ["online-a"]


@pytest.mark.parametrize("setting", ["model", "train", "average", "decode", "arithmetic"])
def test_the_resolved_settings_of_training_are_false_for_an_external_system(tmp_path, setting):
    """DVC needs a value of each setting for each system."""
    runs = read_params(tmp_path, PARAMS_WITH_EXTERNAL).resolved()["runs"]

    assert runs["online-a"]["own"][setting] is False


def test_the_resolved_translations_are_false_for_a_trained_system(tmp_path):
    """DVC needs a value of each setting for each system."""
    runs = read_params(tmp_path, PARAMS_WITH_EXTERNAL).resolved()["runs"]

    assert runs["base"]["own"]["translations"] is False


def test_an_external_system_may_have_other_translations_for_each_corpus(tmp_path):
    """There are two corpora, `own` and `more`.

    The file a.no is the default, b.no that of `more`.
    """
    own_files = f"translations: {{held-out: {{path: inputs/external/b.no, sha256: {64 * 'b'}}}}}"
    corpora = f"    corpora: {{own: {{}}, more: {{{own_files}}}}}\n"
    settings = read_params(
        tmp_path, replace_once(PARAMS_WITH_TWO_CORPORA, "    about", f"{corpora}    about")
    )

    system_on_own = settings.external_systems_on("own")["online-a"]
    system_on_more = settings.external_systems_on("more")["online-a"]

    assert system_on_own.translations["held-out"].path == "inputs/external/a.no"
    assert system_on_more.translations["held-out"].path == "inputs/external/b.no"


def test_an_external_system_does_not_change_the_fingerprint_of_a_trained_one(tmp_path):
    """Adding an external system to params.yaml makes no training out of date.

    A fingerprint is the hash of the settings that affect a result.
    """
    trained_run = Run("base", "own", 1)

    fingerprint_without = settings_sha256(read_params(tmp_path, PARAMS), trained_run)
    fingerprint_with = settings_sha256(read_params(tmp_path, PARAMS_WITH_EXTERNAL), trained_run)

    assert fingerprint_with == fingerprint_without


def test_other_translations_change_the_fingerprint_of_an_external_system(tmp_path):
    """A fingerprint, the hash of the settings that affect a result, decides what is out of date.

    Other translations are scored again.
    """
    external_run = Run("online-a", "own", 1)
    settings = read_params(tmp_path, PARAMS_WITH_EXTERNAL)
    changed_settings = read_params(tmp_path, replace_once(PARAMS_WITH_EXTERNAL, SHA256, 64 * "b"))

    fingerprints = {
        settings_sha256(settings, external_run),
        settings_sha256(changed_settings, external_run),
        settings_sha256(settings, Run("base", "own", 1)),
    }

    assert len(fingerprints) == 3  # all differ


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "held-out:",
            "news:",
            f":{FILE_LINE}: systems.online-a.translations.news: own has no such test set",
            id="unknown test set",
        ),
        pytest.param(
            "external/a.no",
            "a.no",
            f":{FILE_LINE}: systems.online-a.translations.held-out: path is 'inputs/a.no'",
            id="file in another folder",
        ),
        pytest.param(
            "external/a.no",
            "external/../a.no",
            "files must be below inputs/external/",
            id="up from the folder",
        ),
        pytest.param(
            "system A, 3 May",
            "",
            f":{ABOUT_LINE}: systems.online-a.about: '' is blank",
            id="empty description",
        ),
        pytest.param(
            "system A, 3 May",
            "  ",
            f":{ABOUT_LINE}: systems.online-a.about: '  ' is blank: write",
            id="blank description",
        ),
        pytest.param(
            '    about: "system A, 3 May"\n',
            "",
            "online-a: the key 'about' is missing",
            id="no description",
        ),
        pytest.param(
            "    about:",
            "    abuot: x\n    about:",
            "abuot: unknown key. Did you mean 'about'?",
            id="unknown key",
        ),
        pytest.param(
            SHA256,
            "x",
            "sha256: a SHA-256 is 64 hexadecimal digits, lower case, not 'x'",
            id="invalid hash",
        ),
        pytest.param(
            "    about:",
            "    train: {max_updates: 3}\n    about:",
            # The translations are one line below, because of the inserted line.
            f":{TRANSLATIONS_LINE + 1}: systems.online-a.translations: online-a has "
            "translations, so it is an external system and cannot have train. Remove one of the "
            "two settings, or the `like` that brings it",
            id="settings of a training",
        ),
        pytest.param(
            "    about:",
            "    like: base\n    about:",
            f":{TRANSLATIONS_LINE + 1}: systems.online-a.translations: online-a has "
            "translations, so it is an external",
            id="inherited settings of a training",
        ),
        pytest.param(
            "    about:",
            "    corpora: {won: {}}\n    about:",
            f":{NAME_LINE + 1}: systems.online-a.corpora.won: no such corpus; there are: own",
            id="unknown corpus",
        ),
    ],
)
def test_a_mistake_in_an_external_system_is_reported_in_one_line(tmp_path, old, new, message):
    error = params_error(tmp_path, replace_once(PARAMS_WITH_EXTERNAL, old, new))

    assert message in error
    assert "\n" not in error


@pytest.mark.parametrize(
    ("translations", "message"),
    [
        pytest.param("translations: [a.no]", "is not a mapping of names", id="list"),
        pytest.param("translations: {}", "{} needs at least 1 entry", id="no test set"),
        pytest.param("translations:", "an empty value is not a mapping of names", id="no value"),
    ],
)
def test_translations_must_name_a_file_for_a_test_set(tmp_path, translations, message):
    """ONLINE is the entry of the external system `online-a`; here its translations are wrong."""
    before_translations = ONLINE[: ONLINE.index("    translations")]
    online = f"{before_translations}    {translations}\n"

    error = params_error(tmp_path, replace_once(PARAMS_WITH_EXTERNAL, ONLINE, online))

    assert f"params.yaml:{TRANSLATIONS_LINE}: systems.online-a.translations: " in error
    assert error.endswith(message)


def test_an_experiment_with_only_external_systems_is_refused(tmp_path):
    """The system `base` is removed from params.yaml, which leaves `online-a`, an external one."""
    base = PARAMS_WITH_EXTERNAL[
        PARAMS_WITH_EXTERNAL.index("  base:\n") : PARAMS_WITH_EXTERNAL.index(ONLINE)
    ]

    error = params_error(tmp_path, replace_once(PARAMS_WITH_EXTERNAL, base, ""))

    message = "systems: all systems are external. Add one that is trained here, as the baseline"
    assert message in error
    assert "\n" not in error


@pytest.mark.parametrize("first_seed", [1, 2])
def test_the_resolved_translations_contain_the_first_seed(tmp_path, first_seed):
    """DVC compares them, so another first seed runs the stage again that copies translations."""
    text = replace_once(PARAMS_WITH_EXTERNAL, "seeds: [1]", f"seeds: [{first_seed}, 3]")

    settings = read_params(tmp_path, text)

    translations = settings.resolved()["runs"]["online-a"]["own"]["translations"]
    assert translations["seed"] == first_seed
    assert list(translations["files"]) == ["held-out"]


@pytest.mark.parametrize("first_seed", [1, 2])
def test_stages_read_the_settings_of_any_first_seed(tmp_path, first_seed):
    """The translations of an external system are copied once, for the first seed."""
    text = replace_once(PARAMS_WITH_EXTERNAL, "seeds: [1]", f"seeds: [{first_seed}, 3]")
    settings = read_params(tmp_path, text)

    write_resolved(tmp_path)

    assert load_resolved_settings(tmp_path) == settings


@pytest.mark.parametrize(
    ("translations", "message"),
    [
        pytest.param("", "systems.online-a: the key 'translations' is missing", id="missing"),
        pytest.param(
            "    translation: {}\n",
            "translation: unknown key. Did you mean 'translations'?",
            id="misspelled",
        ),
    ],
)
def test_a_system_with_a_description_needs_translations(tmp_path, translations, message):
    """Only external systems have `about`, so the message does not ask for a training instead."""
    before_translations = ONLINE[: ONLINE.index("    translations")]

    error = params_error(
        tmp_path, replace_once(PARAMS_WITH_EXTERNAL, ONLINE, before_translations + translations)
    )

    assert message in error
    assert "train" not in error


def test_a_training_cannot_start_from_an_external_system(tmp_path):
    """The system `tuned` is to start from the weights of `online-a`, which is external."""
    text = replace_once(PARAMS_WITH_EXTERNAL, ONLINE, f"{ONLINE}  tuned:\n    like: base\n")
    text += "init_from:\n  tuned: {system: online-a, corpus: own}\n"

    error = params_error(tmp_path, text)

    assert "online-a is an external system, so it has no model" in error
    assert "\n" not in error


def test_an_external_system_cannot_start_from_a_trained_one(tmp_path):
    """`online-a` is external: nothing is trained that could start from the weights of `base`."""
    text = f"{PARAMS_WITH_EXTERNAL}init_from:\n  online-a: {{system: base, corpus: own}}\n"

    error = params_error(tmp_path, text)

    assert "init_from.online-a: online-a is an external system" in error
    assert "\n" not in error


def test_a_mistake_in_a_corpus_is_not_reported_again_for_its_external_system(tmp_path):
    """A corpus with a mistake is ignored afterwards, and systems that need it are not checked."""
    text = f"{PARAMS_WITH_TWO_CORPORA}vocabularies: {{own: own}}\n"

    error = params_error(tmp_path, text)

    line = line_number(text, "vocabularies:")
    assert error.startswith(f"{tmp_path}/params.yaml:{line}: vocabularies.own: ")
    assert "\n" not in error
