"""Directions with language tags: the stages write what they write for plain languages."""

import re

from bleuprint.text.language_tag import tag
from corpora import lines_to_text
from multilingual import RANGES, SENTENCES, params_with_directions, run_stage, sentences_of
from params import write_resolved
from steps import DATA_STAGES

# The tag of a language; English keeps its plain one.
TAGS = {"de": "de-AT", "fr": "fra_Latn"}


def without_tags(text):
    """Return a text in which each tag is the plain language again."""
    for language, language_tag in TAGS.items():
        text = text.replace(language_tag, language)
    return text


def write_project(folder):
    """Write a project like that of the fixture `root`, with tags as languages."""
    (folder / "inputs").mkdir()
    for language in SENTENCES:
        language_tag = TAGS.get(language, language)
        for name in RANGES:
            lines = sentences_of(name, language)
            if (name, language) == ("train", "de"):
                lines[3] = SENTENCES["de"][21]
            (folder / "inputs" / f"{name}.{language_tag}").write_text(lines_to_text(lines))
    params = params_with_directions()
    for language, language_tag in TAGS.items():
        params = re.sub(rf"\b{language}\b", language_tag, params)
    (folder / "params.yaml").write_text(params)
    write_resolved(folder)


def text_files(root):
    """Return the content of each text that the stages wrote, by its name; both without tags."""
    contents = {}
    for stage in ("split", "tokens"):
        for path in (root / "data" / stage / "many").rglob("*"):
            is_text = path.is_file() and path.suffix != ".json" and not path.name.startswith(".")
            if is_text:
                name = without_tags(str(path.relative_to(root)))
                contents[name] = without_tags(path.read_text())
    return contents


def test_tags_change_the_names_of_files_and_the_tags_of_sentences_only(root, tmp_path):
    """The directions are en-de-AT, de-AT-en, en-fra_Latn and de-AT-fra_Latn."""
    write_project(tmp_path)
    for script in DATA_STAGES:
        run_stage(script, tmp_path)

    tagged_sources = (tmp_path / "data/tokens/many/train.src").read_text()
    assert f"{tag('de-AT')} " in tagged_sources
    assert f"{tag('fra_Latn')} " in tagged_sources
    assert text_files(tmp_path) == text_files(root)
