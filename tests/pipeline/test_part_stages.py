"""What DVC runs again after an edit of a corpus with three parts."""

import pytest

import micro
from shared_folders import left_unchanged

# A text of the corpus, with its name twice and its rules.
TEXT = "{license_and_citation: own, source: {path: inputs/%s.en}, target: {path: inputs/%s.de}%s}"
STAGES_OF_A_PART = ("download_part", "clean_part", "filter_part")
# The stages that run for the whole corpus, once its text has changed.
STAGES_AFTER_PARTS = ["dedup", "filter", "split", "tokenize", "learn_vocabulary", "binarize"]


def texts(**settings):
    """Return the training texts of a corpus in params.yaml: their settings by name."""
    lines = "".join(f"        {name}: {TEXT % (name, name, settings[name])}\n" for name in settings)
    return f"      train:\n{lines}"


def set_texts(project, **settings):
    """Write params.yaml with these training texts, which are all parts."""
    before, _, rest = micro.PARAMS.partition("      train:\n        a:")
    after = rest.partition("\n")[2]
    parts = "".join(f"  {name}: {{}}\n" for name in settings)
    project.write("params.yaml", f"parts:\n{parts}{before}{texts(**settings)}{after}")


def prepare(project):
    """Run the stages that prepare the corpus; return those that DVC ran, without resolve."""
    output = project.run("dvc", "repro", "binarize@own", "corpus_stats@own")
    stages = micro.stages_in_output(output)
    return [stage for stage in stages if stage != "resolve"]


def of_corpus(*kinds):
    """Return the names of stages of the corpus own."""
    return {f"{kind}@own" for kind in kinds}


def of_part(part, *kinds):
    """Return the names of stages of a part of the corpus own."""
    return {f"{kind}@own-{part}" for kind in kinds or STAGES_OF_A_PART}


def write_text(project, name, first, count):
    """Write a training text whose pairs contain the numbers from `first` on."""
    numbers = range(first, first + count)
    project.write(f"inputs/{name}.en", "".join(f"ba deo {number}\n" for number in numbers))
    project.write(f"inputs/{name}.de", "".join(f"BA DEO {number}\n" for number in numbers))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return a project with the corpus own of the parts a, b and c, after its preparation.

    Each has 100 pairs; c repeats half of b. Not to be changed.
    """
    project = micro.make(tmp_path_factory.mktemp("parts") / "project")
    for name, first in {"a": 0, "b": 100, "c": 150, "d": 300}.items():
        write_text(project, name, first, 100)
    set_texts(project, a="", b="", c="")
    prepare(project)
    with left_unchanged(project.root):
        yield project


@pytest.fixture
def project(prepared, tmp_path):
    """Return a copy of the prepared project, which a test may change."""
    return prepared.copy(tmp_path / "project")


def lines_of(project, path):
    """Return the number of lines of a file of the project."""
    return len(project.read(path).splitlines())


def test_all_parts_are_prepared_and_deduplicated_together(project):
    """C repeats 50 of the 100 pairs of b."""
    for part in "abc":
        assert lines_of(project, f"data/clean/own/part-{part}/train.en") == 100
    assert lines_of(project, "data/dedup/own/train.en") == 250
    assert project.changed_stages() & of_corpus("dedup", "binarize") == set()


def test_nothing_runs_without_an_edit(project):
    assert prepare(project) == []


def test_a_new_part_prepares_only_itself_before_dedup(project, prepared):
    set_texts(project, a="", b="", c="", d="")

    stages = prepare(project)

    expected = of_part("d") | of_corpus(*STAGES_AFTER_PARTS)
    assert set(stages) - of_corpus("corpus_stats") == expected
    assert lines_of(project, "data/dedup/own/train.en") == 350
    assert lines_of(project, "data/raw/own/given/train.en") == 0
    for part in "abc":
        path = f"data/clean/own/part-{part}/train.en"
        assert project.read(path) == prepared.read(path)


def test_a_rule_of_one_part_runs_its_stage_and_those_after_it(project):
    """No pair of b has such a ratio of lengths: its text stays, and nothing after it runs."""
    set_texts(project, a="", b=", filter: {length_ratio: {max: 1.5}}", c="")

    stages = prepare(project)

    assert set(stages) == of_part("b", "filter_part")


def test_a_rule_that_drops_pairs_of_one_part_runs_the_stages_of_the_corpus(project):
    """Of the 100 pairs of b, the rule keeps those whose words have at most three letters."""
    project.edit("inputs/b.en", "ba deo 107\n", "ba deooo 107\n")
    prepare(project)
    set_texts(project, a="", b=", filter: {long_word: {max: 3}}", c="")

    stages = prepare(project)

    parts = of_part("a") | of_part("b") | of_part("c")
    assert set(stages) & parts == of_part("b", "filter_part")
    assert of_corpus("dedup") <= set(stages)
    assert lines_of(project, "data/clean/own/part-b/train.en") == 99


def test_a_rule_of_the_corpus_runs_the_filters_of_its_parts(project):
    """No pair has such a ratio of lengths, so the text of each part stays."""
    project.edit("params.yaml", "length_ratio: {max: 3.0}", "length_ratio: {max: 2.9}")

    stages = prepare(project)

    filters_of_parts = {f"filter_part@own-{part}" for part in "abc"}
    assert set(stages) == filters_of_parts | of_corpus("filter")


def test_a_rule_that_drops_all_pairs_of_a_part_is_named(project):
    set_texts(project, a=", filter: {long_word: {max: 1}}", b="", c="")

    output = project.run("dvc", "repro", "binarize@own", status=None)

    assert "corpus own, part a: filter dropped all pairs of train" in output
    assert "dropped by long_word 100" in output


def test_new_text_of_one_part_prepares_no_other_part(project):
    """A line of inputs/b.en is edited."""
    project.edit("inputs/b.en", "ba deo 107\n", "ba gu 107\n")

    stages = prepare(project)

    parts = of_part("a") | of_part("b") | of_part("c")
    assert set(stages) & parts == of_part("b")
    assert of_corpus("download", "clean") & set(stages) == set()


def test_the_order_of_parts_runs_dedup(project, prepared):
    """Which of two equal pairs stays depends on the order, so the order of the text changes."""
    set_texts(project, c="", a="", b="")

    stages = prepare(project)

    parts = of_part("a") | of_part("b") | of_part("c")
    assert set(stages) & parts == set()
    assert of_corpus("dedup") <= set(stages)
    first_line = project.read("data/dedup/own/train.en").splitlines()[0]
    assert first_line == project.read("inputs/c.en").splitlines()[0]
    assert first_line != prepared.read("data/dedup/own/train.en").splitlines()[0]


def test_the_vocabulary_prepares_no_text_again(project):
    project.edit("params.yaml", "num_merges: 40", "num_merges: 20")

    stages = prepare(project)

    assert set(stages) == of_corpus("learn_vocabulary", "binarize", "corpus_stats")


def test_a_removed_part_leaves_the_folders_that_other_stages_read(project, tmp_path):
    """The outputs are then those of a project that never had the part."""
    set_texts(project, a="", b="")
    prepare(project)

    fresh = micro.make(tmp_path / "fresh" / "project")
    for name in "ab":
        for language in ("en", "de"):
            fresh.write(f"inputs/{name}.{language}", project.read(f"inputs/{name}.{language}"))
    set_texts(fresh, a="", b="")
    prepare(fresh)

    for folder in ("data/raw/own", "data/clean/own", "data/filter_stats/own", "data/binary/own"):
        assert contents(project, folder) == contents(fresh, folder)


def contents(project, folder):
    """Return the bytes of each file of a folder by its path in the folder."""
    files = {}
    for path in (project.root / folder).rglob("*"):
        if path.is_file():
            files[str(path.relative_to(project.root / folder))] = path.read_bytes()
    return files


def test_a_corpus_without_the_parts_stays_as_it_is_when_a_part_is_added(project):
    """The corpus other has one text, e. DVC gives it empty stages of the parts a, b and c."""
    removed_texts = "a: null, b: null, c: null"
    text = TEXT % ("a", "a", "")
    other = f"  other: {{like: own, files: {{train: {{{removed_texts}, e: {text}}}}}}}\n"
    project.edit("params.yaml", "systems:\n", f"{other}systems:\n")
    project.run("dvc", "repro", "binarize@other")
    set_texts(project, a="", b="", c="", d="")
    other = other.replace("c: null", "c: null, d: null")
    project.edit("params.yaml", "systems:\n", f"{other}systems:\n")

    output = project.run("dvc", "repro", "binarize@other")

    stages = set(micro.stages_in_output(output)) - {"resolve"}
    assert stages == {f"{kind}@other-d" for kind in STAGES_OF_A_PART}


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 3])
def test_snakemake_prepares_parts_with_the_same_bytes_as_dvc(prepared, tmp_path, shards):
    """`prepared` is by `dvc repro`, without shards."""
    project = micro.make(tmp_path / "project")
    for name in "abc":
        for language in ("en", "de"):
            project.write(f"inputs/{name}.{language}", prepared.read(f"inputs/{name}.{language}"))
    set_texts(project, a="", b="", c="")

    output = project.snakemake(
        "data/binary/own", "data/corpus_stats/own", "--set-scatter", f"shards={shards}"
    )

    assert ("filter_part@own-b, shard 3-of-3" in output) == (shards == 3)
    for folder in ("data/clean/own", "data/dedup/own", "data/binary/own"):
        expected = contents(prepared, folder)
        found = contents(project, folder)
        found = {path: data for path, data in found.items() if ".snakemake" not in path}
        assert found == expected
    assert project.changed_stages() & of_part("b") == set()
