"""The reproducibility checklists of ACL and of machine learning, answered from what is recorded."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import TextWrapper

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.report.checklist_facts import recorded_facts

# The source of each list, before its first question. ACL numbers its questions; those of the other
# list are numbered here by their place in a section.
LISTS = {
    "A1": "Responsible NLP Research Checklist of ACL Rolling Review (Carpuat, de Marneffe and Meza "
    "Ruiz for NAACL 2022; E1 since ACL 2023): https://aclrollingreview.org/responsibleNLPresearch",
    "Models 1": "Machine Learning Reproducibility Checklist, v2.0, of the ML Reproducibility "
    "Challenge (Pineau 2020), but for theoretical claims: "
    "https://www.cs.mcgill.ca/~jpineau/ReproducibilityChecklist.pdf",
}
# `question` is in short; `facts` answer it; `open` is what no file records.
QUESTIONS = pd.read_csv(Path(__file__).with_name("checklist.csv"), keep_default_na=False)
STATES = "recorded", "in part", "open"

_WIDTH = 96
_HEAD = TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
_BODY = TextWrapper(
    _WIDTH,
    initial_indent="    ",
    subsequent_indent="      ",
    break_long_words=False,
    break_on_hyphens=False,
)


def checklist(settings: Settings, records: pd.DataFrame, root: Path = Path()) -> Iterator[str]:
    """The lines of text: each question with what answers it, and the files that say so.

    A fact that an earlier question showed is referred to. What is missing in `root`, such as
    ledgers that were not pulled, is OPEN like what the authors alone can say.
    """
    facts, shown, states = recorded_facts(settings, records, root), dict[str, str](), list[str]()
    for each in QUESTIONS.itertuples():
        names = each.facts.split()
        still = [facts[name].missing for name in names] + [each.open]
        still = [line for line in still if line]
        answered = any(facts[name].evidence for name in names)
        states.append(STATES[0 if not still else 1 if answered else 2])
        if each.number in LISTS:
            yield from ("", *_HEAD.wrap(LISTS[each.number]))
        yield ""
        yield f"{each.number} [{states[-1]}] {each.question}"
        for name in (name for name in names if name not in shown):
            for file, text in facts[name].evidence:
                yield from _BODY.wrap(f"{file}: {text}")
        earlier = dict.fromkeys(shown[name] for name in names if name in shown)
        if earlier:
            yield from _BODY.wrap(f"see {', '.join(earlier)}")
        for line in still:
            yield from _BODY.wrap(f"OPEN: {line}")
        shown = {**dict.fromkeys(names, each.number), **shown}
    yield ""
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES)
    yield f"{len(states)} questions: {counts}."
