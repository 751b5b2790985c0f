"""Files of external systems are copied and scored as they are, and others are refused."""

import hashlib
import re
import shutil

import pytest

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.decoding.copied_translations import CopiedTranslations, copy_translations
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json
from bleuprint.scoring.external_files import check_external_files
from bleuprint.scoring.score import score_run
from corpora import TORTURE
from measuring import value_of
from scoring import sacrebleu

CORPORA = {"news-en-de": ("first", "second")}
FILE = "inputs/external/a.de"
RUN = Run("online-a", "news-en-de", 1)
REFERENCES = "data/split/news-en-de/test.first.de"
SCORES = "results/online-a/news-en-de/1/scores.json"

PLACE = "systems.online-a.translations.first: "
OTHERS = [hashlib.sha256(content).hexdigest() for content in (b"y\n" * 40, b"z\n")]


def external(content):
    """The entry of a system with a file of translations of the first test set."""
    file = {"path": FILE, "sha256": hashlib.sha256(content).hexdigest()}
    return {"online-a": {"about": "system A", "translations": {"first": file}}}


def project(root, content):
    (root / FILE).parent.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_bytes(content)
    return trees.settings_in(root, corpora=CORPORA, external=external(content))


def copy_and_score(settings, root):
    """What the stages translate and score do."""
    copy_translations(settings, RUN, root)
    score_run(settings, *RUN, root)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    root = tmp_path_factory.mktemp("texts")
    trees.write_texts(root, trees.settings_in(root, corpora=CORPORA), 40)
    return root


@pytest.fixture
def root(texts, tmp_path):
    return shutil.copytree(texts, tmp_path / "copy")


def translations(root):
    """The references of the first test set, with a word less in each."""
    references = (root / REFERENCES).read_text().split("\n")[:-1]
    return [line.partition(" ")[2] for line in references]


def test_scores_are_those_of_sacrebleus_command_line(root):
    settings = project(root, "".join(f"{line}\n" for line in translations(root)).encode())
    copy_and_score(settings, root)
    scores = read_json(root / SCORES)
    assert list(scores) == ["first"]
    references = root / REFERENCES
    found = sacrebleu(references, "-i", root / FILE, "-l", "en-de", "-m", "bleu", "chrf", "ter")
    for key, of in zip(("bleu", "chrf2", "ter"), found, strict=True):
        assert value_of(scores["first"], key) == pytest.approx(of["score"], abs=1e-5)
    assert (value_of(scores["first"], "bleu") or 100) < 95
    assert value_of(scores["first"], "loss") is None
    assert value_of(scores["first"], "any error") is not None


def test_a_line_ends_at_a_newline_alone(root):
    lines = translations(root)
    odd = [*TORTURE, "".join(TORTURE)]
    lines = [f"x{c}{line}{c}x" for c, line in zip((odd * 3)[:40], lines, strict=True)]
    content = "\n".join(lines).encode()  # the last without its \n
    settings = project(root, content)
    assert list(check_external_files(settings, root)) == []
    copy_and_score(settings, root)
    copy = root / SCORES.replace("scores.json", "hypotheses/test.first.de")
    assert copy.read_bytes() == content + b"\n"
    assert read_json(root / SCORES)["first"]["lines"] == 40


def test_a_byte_order_mark_and_windows_line_ends_cost_nothing(root):
    found = []
    for mark, end in ("", "\n"), ("\ufeff", "\r\n"):
        content = mark + "".join(f"{line}{end}" for line in translations(root))
        copy_and_score(project(root, content.encode()), root)
        found.append((root / SCORES).read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("content", "told", "message"),
    [
        (
            b"x\n" * 39,
            None,
            f"{PLACE}ROOT/{FILE} has 39 lines, but the test set first of news-en-de has 40",
        ),
        (
            b"y\n" * 40,
            b"z\n",
            f"{PLACE}ROOT/inputs/external/a.de has SHA-256 {OTHERS[0]}, but sha256 is {OTHERS[1]}",
        ),
        (
            b"x\n" * 20 + b"\xff\n" + b"x\n" * 19,
            None,
            f"{PLACE}ROOT/{FILE}:21: byte 1 of the line is 0xff: not UTF-8",
        ),
    ],
)
def test_another_file_is_refused_and_the_scores_are_kept(root, content, told, message):
    copy_and_score(project(root, b"x\n" * 40), root)
    before = (root / SCORES).read_bytes()
    settings = project(root, told or content)
    (root / FILE).write_bytes(content)
    with pytest.raises(UserError) as error:
        copy_and_score(settings, root)
    assert message in str(error.value).replace(str(root), "ROOT")
    assert "\n" not in str(error.value)
    assert re.search(r"params\.yaml:\d+: systems", str(error.value))
    assert (root / SCORES).read_bytes() == before
    if "SHA" in message or "UTF" in message:
        with pytest.raises(UserError) as checked:
            list(check_external_files(settings, root))
        assert str(checked.value) == str(error.value)
    elif "lines" in message:  # of a test set that may be prepared again before it is scored
        (note,) = check_external_files(settings, root)
        assert note.endswith(f"/a.de: has 39 lines, but {root / REFERENCES} has 40")


def test_a_file_with_the_references_is_noted_by_its_name(root, capsys):
    copy_and_score(project(root, (root / REFERENCES).read_bytes()), root)
    said = f"{FILE}: all translations are identical to the references\n"
    assert capsys.readouterr().err.endswith(said)


def test_a_file_that_is_not_here_is_named(root):
    settings = project(root, b"x\n" * 40)
    (root / FILE).unlink()
    with pytest.raises(UserError, match=rf"{PLACE}.*a\.de: no such file"):
        copy_and_score(settings, root)
    (note,) = check_external_files(settings, root)
    assert note.endswith(f"systems.online-a.translations.first: {root / FILE}: no such file")
    (root / FILE).mkdir()
    with pytest.raises(UserError, match=rf"{PLACE}.*a\.de: a folder"):
        list(check_external_files(settings, root))


def noted(root, lines):
    """What the stage and `check` say of a file with these lines; both say the same."""
    settings = project(root, "".join(f"{line}\n" for line in lines).encode())
    checked = list(check_external_files(settings, root))
    copy_and_score(settings, root)
    metrics = read_json(root / SCORES)["first"]["metrics"]
    stored = [each["group"] for each in metrics if each["metric"] == "warning"]
    assert [note.partition(PLACE)[2] for note in checked] == [
        f"{root / FILE}: {warning}" for warning in stored
    ]
    return stored


def test_translations_in_another_form_are_named(root, capsys):
    assert noted(root, translations(root)) == []
    subwords = [line.replace(" ", "@@ ", 1) for line in translations(root)]
    (warning,) = noted(root, [*translations(root)[:4], *subwords[4:]])
    remedy = "BLEU is of sentences: join the subwords first: sed -E 's/@@( |$)//g'"
    assert warning == f"90% of the lines look like BPE subwords (@@), such as line 5; {remedy}"
    assert f"note: {FILE}: {warning}\n" in capsys.readouterr().err
    tokens = [line.replace(".", " .") for line in translations(root)]
    (warning,) = noted(root, tokens)
    assert "tokens set apart by spaces" in warning


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("{n}\t{line}", "columns of a table (tabs)"),
        ("{n} ||| {line} ||| -1.5", "fields with ||| between them (n-best list, fast_align)"),
        ('{n},"{line}"', "quoted or numbered fields (CSV)"),
    ],
)
def test_the_remedy_for_fields_is_the_translations_alone(root, line, form):
    lines = [line.format(n=n, line=text) for n, text in enumerate(translations(root))]
    (warning,) = noted(root, lines)
    assert warning == (
        f"100% of the lines look like {form}, such as line 1; BLEU is of sentences: "
        "write the translations alone, one per line"
    )


def test_the_form_of_the_references_is_right(root):
    references = root / REFERENCES
    references.write_text(references.read_text().replace(".", " ."))
    described = root / "data/test_stats/news-en-de/first.json"
    assert described.exists()
    assert noted(root, [line.replace(".", " .") for line in translations(root)]) == []


def test_copies_of_the_references_or_of_the_sources_are_named(root):
    references = (root / REFERENCES).read_text().split("\n")[:-1]
    sources = (root / REFERENCES.replace(".de", ".en")).read_text().split("\n")[:-1]
    own = translations(root)
    assert noted(root, references) == ["all translations are identical to the references"]
    part = noted(root, [*references[:30], *own[30:]])
    assert part == ["75% of the translations are identical to the references"]
    assert noted(root, [*sources[:20], *own[20:]]) == [
        "50% of the translations are identical to the sources"
    ]
    assert noted(root, [*sources[:19], *own[19:]]) == []


def test_before_the_test_set_is_prepared_form_and_empty_lines_are_checked(root):
    """The number of lines, and copies of the sources, cannot be checked yet."""
    subwords = [line.replace(" ", "@@ ", 1) for line in translations(root)]
    lines = ["", *subwords[1:], "", "x"]
    settings = project(root, "".join(f"{line}\n" for line in lines).encode())
    shutil.rmtree(root / "data" / "split")
    number, empty, form = check_external_files(settings, root)
    assert number.endswith(
        "/a.de: has 42 lines, to be compared with the test set first of news-en-de once it is "
        "prepared. To prepare it now: dvc repro split"
    )
    assert empty.endswith("/a.de: 2 of 42 translations are empty: line 1 and others")
    assert "look like BPE subwords (@@)" in form


def test_empty_translations_are_named(root):
    own = translations(root)
    assert noted(root, [*own[:39], " "]) == ["1 of 40 translations is empty: line 40"]
    assert noted(root, [own[0], "", "", *own[3:]]) == [
        "2 of 40 translations are empty: line 2 and others"
    ]


FIRST = hashlib.sha256(b"x\n" * 40).hexdigest()


def systems_notes(root, systems, corpora):
    """What `check` says of systems, apart from what it says of the content of their files."""
    (root / FILE).parent.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_bytes(b"x\n" * 40)
    settings = trees.settings_in(root, systems=(), corpora=corpora, external=systems)
    return [note for note in check_external_files(settings, root) if "a.de: " not in note]


def test_one_file_for_test_sets_of_two_languages_is_noted(tmp_path):
    """For two preparations of one test set it is right."""
    file = {"path": FILE, "sha256": FIRST}
    online = {"about": "A", "translations": {"first": file}}
    systems = {"tiny": trees._system(None), "online-a": online}
    same_language = {"news-en-de": ("first",), "more-en-de": ("first",)}
    assert systems_notes(tmp_path, systems, same_language) == []
    (note,) = systems_notes(tmp_path, systems, {"news-en-de": ("first",), "news-en-fr": ("first",)})
    assert re.search(r"params\.yaml:\d+: systems\.online-a\.translations\.first: ", note)
    assert note.endswith(
        "online-a has the same file for first of news-en-de and first of news-en-fr (de and fr); "
        "name the file of each test set (in corpora, for each corpus)"
    )


def test_one_file_for_two_test_sets_is_noted(tmp_path):
    file = {"path": FILE, "sha256": FIRST}
    online = {"about": "A", "translations": {"first": file, "second": file}}
    systems = {"tiny": trees._system(None), "online-a": online}
    (note,) = systems_notes(tmp_path, systems, CORPORA)
    assert "translations.second: online-a has the same file for first of news-en-de and" in note


def test_an_external_system_is_not_the_baseline(tmp_path):
    file = {"path": FILE, "sha256": FIRST}
    online = {"about": "A", "translations": {"first": file}}
    trained = trees._system(None)
    systems = {"online-a": online, "tiny": trained, "small": trained}
    (note,) = systems_notes(tmp_path, systems, CORPORA)
    assert re.search(r"params\.yaml:\d+: systems\.online-a: ", note)
    assert note.endswith(
        "online-a is an external system, so tiny, the first system that is trained here, is the "
        "baseline"
    )


def test_translations_of_another_file_than_params_yaml_names_are_refused(root):
    settings = project(root, b"x\n" * 40)
    copy_translations(settings, RUN, root)
    path = root / RUN.results_folder / "translation.json"
    record = CopiedTranslations.read(path)
    record.check(path, settings, RUN)
    other = project(root, b"y\n" * 40)
    with pytest.raises(UserError, match=r"translate@online-a-news-en-de-1, then dvc repro"):
        record.check(path, other, RUN)
