"""p-values equal those of sacreBLEU's command line, run beside."""

from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.scoring.significance import PValues, paired_tests
from scoring import sacrebleu, text


def test_p_values_equal_the_command_line(tmp_path: Path) -> None:
    references, good, worse = text("de")
    similar = list(good)
    similar[::7], similar[3::7] = references[::7], worse[3::7]
    systems = {"good": good, "worse": worse, "similar": similar}
    for name, lines in {"references": references, **systems}.items():
        trees.write_lines(tmp_path / name, lines)
    ours = paired_tests(systems, references, "de")
    inputs = [tmp_path / name for name in systems]
    options = (tmp_path / "references", "-l", "en-de", "-i", *inputs)
    bootstrap, randomisation = (sacrebleu(*options, f"--paired-{kind}") for kind in ("bs", "ar"))
    assert list(ours) == ["worse", "similar"]
    for found, one, other in zip(ours.values(), bootstrap[1:], randomisation[1:], strict=True):
        assert found.bootstrap == pytest.approx(one["BLEU"]["p_value"], abs=1e-6)
        assert found.randomization == pytest.approx(other["BLEU"]["p_value"], abs=1e-6)
    assert ours["worse"].bootstrap < 0.05 < ours["similar"].bootstrap
    assert ours["worse"].randomization < 0.05 < ours["similar"].randomization
    assert ours["similar"].bootstrap != ours["similar"].randomization


def test_a_difference_that_no_trial_reaches() -> None:
    # (0 + 1) / (samples + 1), of 1,000 resamples and 10,000 trials
    references, good, worse = text("de")
    found = paired_tests({"a": good, "b": worse}, references, "de")["b"]
    assert found == PValues(round(1 / 1001, 6), round(1 / 10001, 6))


def test_a_difference_in_one_line_alone_is_no_difference_to_the_bootstrap() -> None:
    # Swapped or not, systems that differ in one line differ by as much: sacreBLEU's randomisation
    # counts what is larger, finds nothing, and is as sure as it can be. Docs warn of it.
    references, good, _ = text("de")
    found = paired_tests({"a": good, "b": [*good[:-1], references[-1]]}, references, "de")["b"]
    assert found.bootstrap > 0.05
    assert found.randomization == round(1 / 10001, 6)


def test_identical_translations_do_not_differ() -> None:
    references, good, worse = text("de")
    tested = paired_tests({"a": good, "b": worse, "c": list(good)}, references, "de")
    assert tested["c"] == PValues(1.0, 1.0)
    assert tested["b"].bootstrap < 0.05


def test_the_seed_is_not_the_users_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    references, good, _ = text("de")
    systems = {"a": good, "b": [*good[:-2], *references[-2:]]}
    before = paired_tests(systems, references, "de")
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    assert paired_tests(systems, references, "de") == before


def test_one_line_shows_nothing() -> None:
    """All its samples are the same, for which sacreBLEU would report certainty."""
    systems = {"base": ["be ba bo bi be"], "other": ["a dog sees a cat today"]}
    found = paired_tests(systems, ["a dog sees a cat today"], "en")
    assert found["other"] == PValues(1.0, 1.0)
