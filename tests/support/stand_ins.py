"""A micro project whose stages compute nothing, for tests of what makes a stage stale.

dvc.yaml, the Snakefile and the stage resolve are the real ones. The other scripts in stages/ write
to each output what decides it: their settings, and the files that they depend on. Those of a
training run the shell command WHILE_TRAINING first.
"""

import ast
import json
import runpy
import sys
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import micro
from bleuprint.pipeline import graph, recording
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime.yaml_tree import load_yaml

# The file `b` is not there.
_SECOND_FILES = """\
    files:
      train:
        b: {license_and_citation: own, source: {path: inputs/b.en}, target: {path: inputs/b.de}}
"""
_CORPORA = """\
    corpora:
      own: {decode: {beam: 3}}
      other: {train: {label_smoothing: 0.2}}
"""
_SCRIPT = """\
import json, os, re, subprocess, sys
from hashlib import sha256
from pathlib import Path

ENTRY = json.loads(%r)
NAMES = re.findall(r"\\$\\{([^}]*)\\}", ENTRY["cmd"])
VALUES = dict(zip(NAMES, sys.argv[1:]))

def filled(text):
    return re.sub(r"\\$\\{([^}]*)\\}", lambda found: VALUES[found[1]], text)

def value(key):
    found = RESOLVED
    for name in key.split("."):
        found = found and found[name]
    return found

RESOLVED = json.loads(Path("reports/resolved.json").read_bytes())
if ENTRY["cmd"].startswith("env PYTHONPATH=src python stages/train.py"):
    subprocess.run(os.environ.get("WHILE_TRAINING", "true"), shell=True, check=True)
keys = [filled(key) for each in ENTRY.get("params", ()) for key in each["reports/resolved.json"]]
content = [sys.argv, [value(key) for key in keys if not key.startswith("code.")]]
for path in map(Path, map(filled, ENTRY.get("deps", ()))):
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    content += [[str(f), sha256(f.read_bytes()).hexdigest()] for f in files if f.is_file()]
for out in (*ENTRY["outs"], *ENTRY.get("metrics", ()), *%r):
    path = Path(filled(out if isinstance(out, str) else next(iter(out))))
    written = {path if path.suffix else path / "file": content}
    if Path(sys.argv[0]).stem == "parents":  # a folder for each seed, of the models of that seed
        written = {}
        for seed in RESOLVED["seeds"]:
            of_seed = [each for each in content[2:] if f"/{seed}/" in each[0]]
            written[path / str(seed) / "file"] = of_seed
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(text))
"""


def make(root):
    """Make a project with two systems and two corpora; no stage has run.

    The system `tiny` has other settings on each corpus; `wide` runs on the first corpus only.

    Args:
        root: The folder of the project.
    """
    project = micro.make(root)
    project.edit("params.yaml", "systems:\n", f"{micro.SECOND_CORPUS}{_SECOND_FILES}systems:\n")
    project.edit("params.yaml", "  wide:\n", f"{_CORPORA}  wide:\n")
    without_second_corpus = "    corpora: {own: {}, other: null}\n"  # Belongs to `wide`.
    project.write("params.yaml", project.read("params.yaml") + without_second_corpus)
    for stage in load_yaml(root / "dvc.yaml")["stages"].values():
        entry = stage.get("do", stage)
        script = root / entry["cmd"].split()[3]
        if script.stem != "resolve":
            # dvc.yaml does not list the HTML page, but the Snakefile does.
            more_outputs = ("reports/index.html",) if script.stem == "report" else ()
            text = _SCRIPT % (json.dumps(entry), more_outputs)
            script.write_text(f"{text}\n{_imports(script)}\n")
    project.commit()
    return project


def _imports(script):
    """Return a function, as source, that contains the imports of a stage's script.

    The imports decide on which code the stage depends, although the function is never called.
    """
    lines = ["def imports():"]
    for node in ast.walk(ast.parse(script.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            lines.append(ast.unparse(node))
    return "\n    ".join(lines)


def run(project):
    """Run all stages in this process, record them in DVC, and commit."""
    with chdir(project.root):
        write_resolved()
        stages = graph.load_stages()
        for stage in stages[1:]:
            command = stage.command.split()[3:]
            with patch.object(sys, "argv", command):
                runpy.run_path(command[0])
        recording._record_in_dvc({stage.name for stage in stages}, Path())
    project.commit()
