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
    """Write a project in which only the module of the feature, config/sharing.py, names it."""
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
    """The feature has the names `shared`, `lend`, `lending` and, of a text, `borrowed`."""
    path = "src/bleuprint/report/table.py"
    write(project, path, code)

    assert list(files_that_name(SHARING, project)) == [Path(path)]


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
def test_comments_messages_local_variables_and_similar_words_do_not_count(code, project):
    """The feature has the names `shared`, `lend`, `lending` and, of a text, `borrowed`."""
    write(project, "src/bleuprint/report/table.py", code)

    assert files_that_name(SHARING, project) == {}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("dvc.yaml", "stages: {shared: {cmd: train}}", id="DVC stage"),
        pytest.param(
            "dvc.yaml",
            "stages: {train: {cmd: python stages/train.py shared}}",
            id="command of a DVC stage",
        ),
        pytest.param("Snakefile", "rule all:\n    input: 'data/shared'\n", id="Snakemake input"),
        pytest.param(
            "src/bleuprint/report/templates/table.md.j2",
            "{% if row.shared %}yes{% endif %}",
            id="template of the report",
        ),
        pytest.param("stages/train.py", "shared(1).shared", id="script of a stage"),
    ],
)
def test_the_graph_the_templates_and_the_stages_count_like_modules(path, text, project):
    """The feature has the name `shared`."""
    write(project, path, text)

    assert list(files_that_name(SHARING, project)) == [Path(path)]


def test_a_template_with_the_name_only_in_its_text_and_comments_does_not_count(project):
    template = "shared {# shared #} {{ row.name }}"
    write(project, "src/bleuprint/report/templates/table.md.j2", template)

    assert files_that_name(SHARING, project) == {}


def test_a_feature_has_three_modules_and_further_ones_count_as_files_that_name_it(project):
    """The feature lists four modules in this order; without the limit, no file would count."""
    code = "lend = 1\ncall(lend=1)\n"
    write(project, "src/bleuprint/config/sharing.py", "shared = 1\n")
    write(project, "src/bleuprint/serving/lend.py", code)
    write(project, "stages/share.py", code)
    write(project, "stages/lend.py", code)

    assert list(files_that_name(SHARING, project)) == [Path("stages/lend.py")]


@pytest.mark.parametrize("title", feature_files.FEATURES)
def test_at_most_eight_files_outside_its_modules_name_a_feature_of_this_project(title):
    """A feature that many files ask for cannot be changed or removed in one place."""
    files = files_that_name(feature_files.FEATURES[title], ROOT)

    assert len(files) <= 8, "ask for an ordinary fact instead, such as whether a system is trained"


@pytest.mark.parametrize("title", feature_files.FEATURES)
def test_each_feature_of_this_project_has_a_module(title):
    """TITLE is the name of the feature, such as "COMET"."""
    feature = feature_files.FEATURES[title]

    assert feature.own_modules(ROOT)
