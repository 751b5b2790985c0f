"""Counts the files that name a feature: `python -m tools.feature_files [FOLDER]`.

A feature that many files know of is expensive to change. A file names a feature if it imports one
of the feature's own modules, or if its syntax tree has one of the feature's names: as an attribute,
a key, a keyword or parameter, a field, or as what it defines or imports. So comments, docstrings,
messages and local variables do not count. The files are those of the package with its templates,
the scripts of the stages, dvc.yaml and the Snakefile.

`FEATURES` says where each feature lives and what its names are. A renamed setting or module needs
its new name there; the old names stay, so that earlier revisions can be counted, too.
"""

import argparse
import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
import jinja2.nodes
from ruamel.yaml import YAML

# A feature may have this many modules of its own; further ones count as files that name it.
MAX_OWN_MODULES = 3
_PACKAGE = Path("src", "bleuprint")


@dataclass(frozen=True)
class Feature:
    """A feature of the experiment.

    Attributes:
        modules: The feature's own modules, the most important ones first; paths below the package,
            or from the project's root for scripts of stages.
        names: Regular expressions of the feature's names in lower case, whose words are joined by
            underscores: `zero_shot` also finds `ZeroShot` and `zero_shot_sets`. A name with a dot
            is an attribute and its owner: `corpus.tags`, also a field of the class `Corpus`.
    """

    modules: tuple[str, ...]
    names: tuple[str, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds any of the names as whole words."""
        alternatives = "|".join(self.names).replace(".", r"\.")
        return re.compile(f"(?<![a-z0-9])(?:{alternatives})(?![a-z0-9])")

    def own_modules(self, root: Path) -> list[Path]:
        """Return the first of the feature's own modules that exist, relative to `root`.

        A feature may have `MAX_OWN_MODULES` modules of its own; further ones count as other files.
        """
        found = []
        for module in self.modules:
            path = Path(module)
            if path.parts[0] != "stages":
                path = _PACKAGE / path
            if (root / path).is_file():
                found.append(path)
        return found[:MAX_OWN_MODULES]


FEATURES = {
    # The language pairs of a corpus (`language_pairs` of a corpus or of the settings) are no
    # sign of the feature:
    # every corpus has them, mostly one, and code that loops over them is the same for any number.
    # (By these two names 14 more files counted until November 2026; three of them, export, inspect
    # and the settings of synthetic text, still refuse a corpus of several pairs.)
    # What counts is to know of directions as such: their settings, tags, zero-shot test sets, the
    # names CORPUS/DIRECTION and DIRECTION-TEST, and the languages that name their joined files.
    "several directions": Feature(
        modules=(
            "config/directions.py",
            "config/joined_directions.py",
            "corpus/steps/directions.py",
            "dataset/source_tags.py",
            "corpus/directions.py",
        ),
        names=(
            "directions?",
            "zero_shot",
            "temperature",
            "(corpus|binary_header|header).tags",
            "source_tags",
            # in `report/page`, _pair_of is about two systems
            "(corpus|settings).pair_of",
            # the names of one direction's corpus and test sets: CORPUS/DIRECTION, DIRECTION-TEST
            "(corpus|part).r?partition",
        ),
    ),
    "published numbers": Feature(
        modules=("config/published.py", "report/published/literature.py"),
        names=("published", "literature"),
    ),
    "external systems": Feature(
        modules=(
            "config/external.py",
            "decoding/copied_translations.py",
            "scoring/external_files.py",
            "config/outside.py",
            "serving/score_outside.py",
            "stages/score_outside.py",
        ),
        names=(
            "outside",
            "external",
            "copied_translations",
            "(system|corpus|cells?|runs?).translations",
        ),
    ),
    "shared vocabularies": Feature(
        modules=("config/shared_vocabulary.py", "stages/share_vocabulary.py"),
        names=(
            "vocabulary.of",
            "vocabulary.shared_from",
            "units.of",
            "shared?_vocabular(y|ies)",
            "(settings|whole|known|optional).vocabularies",
        ),
    ),
    "synthetic text": Feature(
        modules=(
            "config/synthetic.py",
            "config/made_texts.py",
            "serving/back_translate.py",
            "serving/made_text.py",
            "stages/back_translate.py",
            "stages/make_text.py",
        ),
        names=(
            "synthetic",
            "back_translat(e|ed|es|ion)",
            "made_texts?",
            "make_text",
            "(text|files).(made|tag)",
        ),
    ),
    "fine-tuning": Feature(
        modules=(
            "config/init_from.py",
            "training/init_weights.py",
            "stages/init_weights.py",
            "training/init_files.py",
            "training/start.py",
            "training/start_files.py",
            "stages/start.py",
        ),
        names=(
            "init_(from|weights|files)",
            "fine_tun(e|ed|ing)",
            "tuned",
            "train.from",
            "start_files",
            "paths.(start|fresh)",
            # the files that a training starts from, and the outputs of the stages before it
            "job.start",
            "data_(starts|parents)",
            "code.fresh",
        ),
    ),
    "pretrained Marian models": Feature(
        modules=(
            "model/marian_weights.py",
            "dataset/marian_vocabulary.py",
            "serving/import_marian.py",
            "model/marian_config.py",
            "serving/export_marian.py",
            "dataset/pretrained_pieces.py",
        ),
        names=(
            "(convert|download|export|import)_marian",
            "marian_(config|tensors|vocabulary|weights)",
            "(format|model_of)_marian",
            "(?<!with_)pretrained_pieces",
            "sentencepiece.folder",
            "piece_hashes",
        ),
    ),
    "pretrained models by name": Feature(
        modules=("config/pretrained.py", "serving/pretrained_models.py"),
        names=(
            "with_pretrained_(pieces|weights)",
            "pretrained_models?",
            "named_models?",
            "(init_from|sentencepiece|sentence_piece).marian",
        ),
    ),
    # csv is no sign of the feature: the report writes such files, too.
    "tables of csv, jsonl and parquet": Feature(
        modules=(
            "corpus/download/formats/tables.py",
            "corpus/download/formats/records.py",
            "corpus/download/formats/parquet.py",
        ),
        names=("jsonl", "parquet"),
    ),
    # The word moses is no sign of the feature: it also names rules of tokenization.
    "archives of a file per language": Feature(
        modules=("corpus/download/formats/moses.py", "corpus/own_archives.py"),
        names=("side_members", "texts_by_stem", "archive_sides"),
    ),
    "own code": Feature(
        modules=("runtime/own_code.py", "config/own_names.py", "model/own_parts.py"),
        names=("own_(code|parts?|positions|attention|models?)",),
    ),
    "own metrics": Feature(
        modules=("scoring/own_metrics.py",),
        names=("own_(metrics?|keys)", "metric.own_module"),
    ),
    # The word huggingface is no sign of the feature: pretrained models have names there, too.
    "texts by name": Feature(
        modules=("config/named_texts.py", "config/sacrebleu_sets.py", "corpus/text_name.py"),
        names=("sacrebleu_sets?", "opus", "names_of_texts", "text_by_name"),
    ),
    "languages by tags": Feature(
        modules=("text/bcp47.py", "runtime/tag_pattern.py"),
        names=("check_language_tag", "with_usual_case", "memory_language_tag"),
    ),
    "scores of pairs": Feature(
        modules=("corpus/download/formats/scores.py",),
        names=("score_limit", "ScoreLimit", "PairScore"),
    ),
    "parts with their own rules": Feature(
        modules=("config/parts.py", "corpus/parts.py", "stages/download_part.py"),
        names=(
            # In other places, a part is a share of the work, or a text of any set.
            "parts?_(corpus|folder|names|outputs|filter_stats.*|edits|order|by_name)",
            "(download|clean|filter)_part",
            "(files|corpus).parts",
            "(link|resolved)_parts",
            "text.separate",
        ),
    ),
    "COMET": Feature(
        modules=("config/comet.py", "scoring/comet.py", "scoring/comet_predict.py"),
        names=("comet",),
    ),
    "accepted changes of code": Feature(
        modules=("runtime/accepted_code.py", "pipeline/accept.py", "report/accepted_notes.py"),
        names=("accepted(_(code|changes?|notes))?", "acceptance"),
    ),
}


def files_that_name(feature: Feature, root: Path) -> dict[Path, str]:
    """Find the files that name a feature, apart from the feature's own modules.

    A file names a feature if it imports one of these modules, or if its code contains one of the
    feature's names: as an attribute, key, parameter or the like.

    Args:
        feature: What to look for.
        root: The project's root.

    Returns:
        For each file, the first such name in it; paths are relative to `root`.
    """
    own_modules = feature.own_modules(root)
    imports = {_import_name(path) for path in own_modules if path.parts[0] != "stages"}
    name_by_file = {}
    for path in _code_files(root):
        if path in own_modules:
            continue
        for name in _names_of(root / path):
            if name in imports or feature.pattern.search(_words(name)):
                name_by_file[path] = name
                break
    return name_by_file


def _code_files(root: Path) -> list[Path]:
    """Return the files of the pipeline, the package and the stages, relative to the root."""
    files = [root / "dvc.yaml", root / "Snakefile"]
    for folder, pattern in (("src", "*.py"), ("src", "*.j2"), ("stages", "*.py")):
        files += (root / folder).rglob(pattern)
    return sorted(path.relative_to(root) for path in files)


def _import_name(module: Path) -> str:
    """Return how a module is imported: `bleuprint.config.comet`."""
    return ".".join(module.with_suffix("").parts[1:])


def _words(name: str) -> str:
    """Return a name in lower case with underscores between its words: `zero_shot` of `ZeroShot`."""
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9.]+", "_", separated.lower()).replace("_.", ".").replace("._", ".")


def _names_of(path: Path) -> Iterator[str]:
    """Return the names that a file contains; how they are found depends on its type."""
    if path.name == "dvc.yaml":
        return _names_of_yaml(YAML(typ="safe").load(path))
    if path.name == "Snakefile":
        return _names_of_snakefile(path)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".j2":
        return _names_of_template(text)
    return _names_of_python(ast.parse(text))


def _names_of_yaml(node: Any) -> Iterator[str]:
    """Yield the keys and the words of all values, without descriptions."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            if key != "desc":
                yield from _names_of_yaml(value)
    elif isinstance(node, list):
        for value in node:
            yield from _names_of_yaml(value)
    else:
        yield from str(node).split()


def _names_of_snakefile(path: Path) -> Iterator[str]:
    """Yield the identifiers and strings of a Snakefile.

    Python cannot parse the file, which is not Python, but it can split it into tokens.
    """
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            is_prose = re.search(r"\s", token.string)
            if token.type in (tokenize.NAME, tokenize.STRING) and not is_prose:
                yield token.string


def _names_of_template(text: str) -> Iterator[str]:
    """Yield variables and attributes of a Jinja template, and the strings without white space."""
    for node in jinja2.Environment().parse(text).find_all(jinja2.nodes.Expr):
        match node:
            case jinja2.nodes.Name(name=str(name)) | jinja2.nodes.Getattr(attr=str(name)):
                yield name
            case jinja2.nodes.Const(value=str(key)) if not re.search(r"\s", key):
                yield key


def _names_of_python(tree: ast.AST, class_name: str = "") -> Iterator[str]:
    """Yield what a syntax tree names, without local variables and prose.

    Args:
        tree: The syntax tree.
        class_name: The class whose body this is, so that its field `size` is `Class.size`; empty
            outside classes.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            yield from _names_of_f_string(node)
            continue
        if isinstance(node, ast.ClassDef):
            yield node.name
            yield from _names_of_python(node, node.name)
            continue
        yield from _own_names(node, class_name)
        yield from _names_of_python(node)


def _own_names(node: ast.AST, class_name: str) -> Iterator[str]:
    """Yield the names in one node of a syntax tree, without the nodes below it.

    Attributes and keys come with their owner: `corpus.tags` for `settings.corpus.tags`, and for
    `corpus["tags"]` or `corpus.get("tags")`, too. A string is a name if it has no white space.
    """
    match node:
        case ast.Attribute():
            yield f"{_last_name(node.value)}.{node.attr}"
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            yield f"{_last_name(node.value)}.{key}"
        case ast.Call(
            func=ast.Attribute(value=owner, attr="get" | "pop" | "setdefault"),
            args=[ast.Constant(value=str(key)), *_],
        ):
            yield f"{_last_name(owner)}.{key}"
        case ast.Constant(value=str(text)) if not re.search(r"\s", text):
            yield text
        case ast.keyword(arg=str(name)) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield f"{class_name}.{name}"
        case ast.AnnAssign(target=ast.Name(id=name)) if class_name:
            yield f"{class_name}.{name}"
        case ast.ImportFrom(module=str(module)):
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def _names_of_f_string(node: ast.JoinedStr) -> Iterator[str]:
    """Yield the names in an f-string: what its braces name, and its literal parts.

    If the literal parts contain white space, they are prose, and only the braces count.
    """
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            yield from _names_of_python(value)
    parts = [str(value.value) for value in node.values if isinstance(value, ast.Constant)]
    if not re.search(r"\s", "".join(parts)):
        yield from parts


def _last_name(node: ast.expr) -> str:
    """Return the last name of an expression: `corpus` of `settings.corpus(name)`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return _last_name(inner)
    return ""


def main() -> None:
    """Print for each feature its own modules and the number of other files, or these files."""
    parser = argparse.ArgumentParser(description="Count the files that name each feature.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="the project's root")
    parser.add_argument("--list", action="store_true", help="print the files and a name in each")
    arguments = parser.parse_args()
    for title, feature in FEATURES.items():
        own_modules = feature.own_modules(arguments.folder)
        files = files_that_name(feature, arguments.folder)
        print(f"{title}: {len(files)} files outside {len(own_modules)} own modules")
        if arguments.list:
            for path, name in files.items():
                print(f"  {path.as_posix()}: {name}")


if __name__ == "__main__":
    main()
