"""Published numbers of params.yaml: one of each kind, in printing characters."""

import pytest

from bleuprint.runtime.errors import UserError
from params import PARAMS, read

NUMBER = "{name: A, source: x, corpus: own, test: held-out, bleu: 3, metric: intl}"


def published(*numbers):
    return PARAMS.replace("published: []", f"published: [{', '.join(numbers)}]")


@pytest.mark.parametrize("name", [r"A\vB", r"A\nB", r"\u202eA"])
def test_a_name_of_unprinted_characters_is_refused(tmp_path, name):
    number = NUMBER.replace("name: A", f'name: "{name}"')
    with pytest.raises(UserError, match=r"published\.0\.name: .* contains a non-printing char"):
        read(tmp_path, published(number))


@pytest.mark.parametrize(
    ("bibtex", "rest"),
    [
        ("Doe 2020", "Doe 2020"),
        ("@misc{doe, title = {A}", "@misc{doe, title = {A}"),
        ("@misc{doe, title = {A}} and B", "and B"),
    ],
)
def test_a_citation_that_is_not_bibtex_is_refused(tmp_path, bibtex, rest):
    number = NUMBER.replace("metric: intl}", f'metric: intl, bibtex: "{bibtex}"}}')
    with pytest.raises(UserError) as error:
        read(tmp_path, published(number))
    assert f"published.0.bibtex: {rest!r} is not a BibTeX entry" in str(error.value)


def test_two_numbers_of_one_kind_are_refused(tmp_path):
    """They would be one run of the table, which shows the second alone."""
    other = NUMBER.replace("bleu: 3", "bleu: 4")
    with pytest.raises(UserError, match=r"published\.1: a second number of A, x, own, held-"):
        read(tmp_path, published(NUMBER, other))
    for change in (("name: A", "name: B"), ("source: x", "source: y"), ("intl", "sacrebleu")):
        assert len(read(tmp_path, published(NUMBER, other.replace(*change))).published) == 2


@pytest.mark.parametrize("key", ["name: A", "source: x"])
def test_a_blank_name_is_refused(tmp_path, key):
    name = key.partition(":")[0]
    number = NUMBER.replace(key, f'{name}: " "')
    with pytest.raises(UserError, match=rf"yaml:\d+: published\.0\.{name}: ' ' is blank: write"):
        read(tmp_path, published(number))


def test_the_system_of_a_number_is_trained_here(tmp_path):
    files = f"{{held-out: {{path: inputs/external/a, sha256: {64 * 'a'}}}}}"
    online = f"  online: {{about: A, translations: {files}}}\n"
    number = NUMBER.replace("metric: intl}", "metric: intl, system: online}")
    text = PARAMS.replace("published: []", f"{online}published: [{number}]")
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    line = text[: text.index("published:")].count("\n") + 1
    assert str(error.value).endswith(
        f"params.yaml:{line}: published.0.system: online is an external system; name a system "
        "that is trained here"
    )
