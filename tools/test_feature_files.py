"""The script that counts which files name a feature."""

from pathlib import Path

import pytest

from root import ROOT
from tools import feature_files
from tools.feature_files import Feature, files_that_name

SHARING = Feature(
    modules=("config/sharing.py", "serving/lend.py", "stages/share.py", "stages/lend.py"),
    names=("shared", "lend(ing)?", "text.borrowed"),
)


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path):
    """A project with an own module of the feature, and without other files that name it."""
    write(tmp_path, "dvc.yaml", "# shared\nstages: {train: {desc: a shared start, cmd: train}}\n")
    write(tmp_path, "Snakefile", "# shared\nrule all:\n    input: 'none shared'\n")
    write(tmp_path, "src/bleuprint/config/sharing.py", "shared = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    "code",
    [
        "from bleuprint.config import sharing",
        "from bleuprint.config.sharing import anything",
        "from bleuprint.config.other import is_shared",
        "settings.corpus('a').shared",
        "settings['shared']",
        "settings.get('shared', {})",
        "path = f'results/{name}/shared.json'",
        "call(shared=1)",
        "def total(shared): ...",
        "class SharedText: ...",
        "class Text:\n    shared: int",
        "class Text:\n    borrowed: int",
        "text.borrowed",
        "self._text['borrowed']",
        "LENDING = Path('data', 'lend')",
    ],
)
def test_a_file_counts_if_it_imports_or_reads_the_feature(code, project):
    write(project, "src/bleuprint/report/other.py", code)
    assert list(files_that_name(SHARING, project)) == [Path("src/bleuprint/report/other.py")]


@pytest.mark.parametrize(
    "code",
    [
        "# shared",
        '"""Text that is shared."""',
        "raise ValueError('not shared: name it')",
        "raise ValueError(f'{name} is not shared')",
        "shared = sum(counts)",
        "settings.unshared",
        "blend",
        "word.borrowed",
    ],
)
def test_comments_messages_and_local_variables_do_not_count(code, project):
    write(project, "src/bleuprint/report/other.py", code)
    assert files_that_name(SHARING, project) == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("dvc.yaml", "stages: {shared: {cmd: train}}"),
        ("dvc.yaml", "stages: {train: {cmd: python stages/train.py shared}}"),
        ("Snakefile", "rule all:\n    input: 'data/shared'\n"),
        ("src/bleuprint/report/templates/table.md.j2", "{% if row.shared %}yes{% endif %}"),
        ("stages/train.py", "shared(1).shared"),
    ],
)
def test_the_graph_templates_and_stages_count(path, text, project):
    write(project, path, text)
    assert list(files_that_name(SHARING, project)) == [Path(path)]


def test_a_template_counts_for_its_code_alone(project):
    write(project, "src/bleuprint/report/templates/table.md.j2", "shared {# shared #} {{ other }}")
    assert files_that_name(SHARING, project) == {}


def test_the_first_three_modules_that_exist_are_the_features_own(project):
    for path in ("stages/share.py", "stages/lend.py", "src/bleuprint/serving/lend.py"):
        write(project, path, "lend = 1\ncall(lend=1)\n")
    assert list(files_that_name(SHARING, project)) == [Path("stages/lend.py")]


@pytest.mark.parametrize("title", feature_files.FEATURES)
def test_few_files_name_a_feature_of_this_project(title):
    files = files_that_name(feature_files.FEATURES[title], ROOT)
    assert len(files) <= 8, "ask for an ordinary fact instead, such as whether a system is trained"


def test_each_feature_of_this_project_has_its_own_module():
    for feature in feature_files.FEATURES.values():
        assert feature.own_modules(ROOT)
