"""The recipe of cleaning: corpora that differ from the cleaned one in the rule left out."""

from dataclasses import asdict, replace

from bleuprint.config.experiment import load
from root import ROOT
from tools.phrasebook.known_faults import has_known_faults

CORPORA = load(ROOT / "recipes" / "cleaning-phrasebook.yaml").corpora
CLEANED, *VARIANTS = CORPORA.items()

LEFT_OUT = {
    "as-it-is": None,
    "no-markup": {"entities", "tags"},
    "no-mojibake": {"mojibake"},
    "no-duplicates": {"pairs", "sources", "targets"},
    "no-near-duplicates": {"sources", "targets"},
    "no-decontaminate": {"decontaminate"},
    "no-identical": {"identical"},
    "no-length": {"length"},
    "no-numbers": {"numbers"},
    "no-sentence-marks": {"sentence_marks"},
    "no-language-id": {"language_id"},
}


def rules(corpus):
    dedup = {key for key, value in asdict(corpus.dedup).items() if value not in (False, "none")}
    return {*corpus.clean, *corpus.filter, *dedup}


def names(chosen):
    return {rule if isinstance(rule, str) else rule.name() for rule in chosen}


def test_the_cleaned_corpus_has_the_rules_of_the_default_experiment():
    """All but alignment_score, which was added after the recipe had run."""
    default = load(ROOT / "params.yaml").corpora["phrasebook-en-de"]
    checks = tuple(check for check in default.filter if check.name() != "alignment_score")
    assert CLEANED[1] == replace(default, filter=checks)


def test_a_corpus_lacks_the_rules_that_its_name_says():
    every = rules(CLEANED[1])
    assert {name: names(every - rules(corpus)) for name, corpus in VARIANTS} == {
        name: names(every) if left is None else left for name, left in LEFT_OUT.items()
    }
    for _, corpus in VARIANTS:
        assert rules(corpus) <= every
        assert has_known_faults(corpus)
        assert corpus.files == CLEANED[1].files
