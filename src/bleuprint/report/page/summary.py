"""The section that comes first: the findings in sentences, and what one would try next."""

from collections.abc import Iterable, Iterator, Sequence

from bleuprint.report import cost_columns
from bleuprint.report.page.advice import LINES, Advice, on_histories, on_records
from bleuprint.report.page.funnel import accounts, kept
from bleuprint.report.page.history import Validation, history
from bleuprint.report.page.html import counted, details, escape
from bleuprint.report.page.material import Material, Section
from bleuprint.report.page.scores import disagreement, p_text, score_text
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import measured, unmeasured
from bleuprint.report.system_results import SIGNIFICANT, Difference, Standing, paired_t

_SHOWN = 3


def summary(material: Material) -> Section:
    tests = dict.fromkeys((one.corpus, one.test) for one in material.standings)
    best = [
        _best([one for one in material.standings if (one.corpus, one.test) == column])
        for column in tests
    ]
    facts = [*best, *_published(material), _cost(material), *_cleaning(material)]
    body = _list(fact for fact in facts if fact)
    systems = material.settings.systems.values()
    ends = dict.fromkeys(
        "max_updates" if one.train.max_epochs is None else "max_epochs" for one in systems
    )
    longer = " or ".join(f"train.{one}" for one in ends)
    advice = [*on_histories(list(_validations(material)), longer)]
    advice += on_records(material.standings)
    if advice:
        body += "<h3>What to try next</h3>\n" + _list(map(_advice, advice), "advice")
        body += '<p class="hint">From rules of thumb on the figures of this page.</p>\n'
    return Section("summary", "In short", body)


def _best(column: Sequence[Standing]) -> str:
    """Which system is best on a test set, and how sure that is."""
    ranked = sorted(column, key=lambda one: -one.bleu.mean)
    best, baseline = ranked[0], column[0]
    where = f"<b>{escape(best.corpus)}</b>, test set {escape(best.test)}"
    name = f"<b>{escape(best.system)}</b>"
    score = f"BLEU {escape(score_text(best.bleu))}"
    lines = best.records[0].lines
    few = "" if lines >= LINES else f" With {counted(lines, 'sentence')}, this says little."
    if len(column) == 1:
        return f"{where}: {name}, the only system, has {score}.{few}"
    second = ranked[1]
    if best is baseline:
        text = f"{where}: the baseline {name} is best, with {score}."
        return f"{text} {_runner_up(best, second)}{few}"
    text = f"{where}: {name} is best, with {score}. {_against_baseline(best)}"
    return f"{text if second is baseline else f'{text} {_runner_up(best, second)}'}{few}"


def _against_baseline(best: Standing) -> str:
    difference = best.difference
    assert difference is not None
    above = f"{difference.bleu:.1f} above the baseline {escape(difference.baseline)}"
    return f"That is {above}: {_sure(difference)}"


def _sure(difference: Difference) -> str:
    """Whether a difference from the baseline is significant, by how much: a sentence's end."""
    p = escape(p_text(difference.p))
    second = disagreement(difference)
    if not difference.significant:
        other = f"; by {second}, it is" if second else ""
        return f"<b>not significant</b> ({escape(p + other)}): it may be chance."
    if second:
        return f"significant by one test ({p}), <b>not by the other</b> ({escape(second)})."
    if difference.mark == "†":
        return (
            f"<b>significant</b> by itself ({p}), but not when corrected for the number of systems "
            f"tested ({escape(p_text(difference.corrected))})."
        )
    return f"<b>significant</b> ({p})."


def _runner_up(best: Standing, second: Standing) -> str:
    """What is known of the difference from the second best."""
    gap = best.bleu.mean - second.bleu.mean
    text = f"Second is {escape(second.system)}, {gap:.1f} below"
    if best.difference is None and second.difference is not None:
        return f"{text}: {_sure(second.difference)}"
    if len(best.records) == 1:
        return f"{text}; that difference is not tested (with one seed, only the baseline's are)."
    pairs = zip(best.records, second.records, strict=True)
    p = paired_t([one.bleu.score - other.bleu.score for one, other in pairs])
    sure = "significant" if p < SIGNIFICANT else "<b>not significant</b>: it may be chance"
    return (
        f"{text}: {sure} ({escape(p_text(p))}, not corrected for the two being chosen by their "
        "scores)."
    )


def _published(material: Material) -> Iterator[str]:
    """How far our scores are from the published ones that the experiment names."""
    more = '<a href="#gap">Why not the published score?</a>'
    found = measured(material.settings, material.records, material.root)
    for gap, _ in found:
        yield f"{escape(gap_tables.heading(gap))}. {escape(gap_tables.sentence(gap))} {more}"
    missing = unmeasured(material.settings, found)
    for number in missing:
        yield escape(gap_tables.hint(number))
    if not found and not missing:
        yield (
            "No published score to compare with is named (<code>published</code> in params.yaml, "
            "with a <code>system</code>). Papers often count BLEU in other ways: "
            '<a href="#reconciliation">Counted as papers do</a>.'
        )


def _cost(material: Material) -> str:
    """What the trainings took, from the least to the most."""
    trained = {record.cell: record for record in material.records}
    ranked = sorted(trained.values(), key=lambda record: record.training_flops)
    flops = dict.fromkeys(cost_columns.counted_flops([ranked[place]]) for place in (0, -1))
    flops_each = f"{' to '.join(flops)} FLOPs{' each' if len(ranked) > 1 else ''}"
    timings = (material.timings.get(cell) for cell in material.cells)
    seconds = [one.training.seconds for one in timings if one and one.training]
    trainings = counted(len(ranked), "training")
    if not seconds:
        return f"{trainings} took {flops_each}."
    if len(seconds) == 1:
        times = _duration(seconds[0])
    else:
        times = f"{_duration(min(seconds))} to {_duration(max(seconds))} each, "
        times += f"{_duration(sum(seconds))} together"
    if len(seconds) < len(ranked):
        few = f"{len(seconds)} {'was' if len(seconds) == 1 else 'were'} timed"
        return f"{trainings} took {flops_each}; {few}, and took {times}."
    return f"{trainings} took {times} ({flops_each})."


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _cleaning(material: Material) -> Iterator[str]:
    """How many training pairs each corpus lost, and to which rules above all."""
    for corpus in material.settings.corpora:
        found = kept(accounts(material, corpus))
        text = f"Data of {escape(corpus)}: "
        if most := found.most()[:_SHOWN]:
            rules = ", ".join(map(escape, most))
            text += f"of {found.read:,} training pairs {found.left:,} are trained on; "
            text += f"dropped above all: {rules}."
        else:
            text += f"all {found.read:,} training pairs are trained on, none was dropped."
        yield text


def _validations(material: Material) -> Iterator[tuple[str, Sequence[Validation]]]:
    for cell in material.cells:
        found = history(cell, material.root)
        if found is not None:
            seed = f", seed {cell.seed}" if len(material.settings.seeds) > 1 else ""
            yield f"{cell.system}, {cell.corpus}{seed}", found.validation


def _advice(advice: Advice) -> str:
    text = f"<b>{escape(advice.title)}.</b> {escape(advice.why)}\n"
    text += _list(map(escape, advice.evidence[:_SHOWN]), "hint")
    if more := advice.evidence[_SHOWN:]:
        text += details(f"{len(more)} more", _list(map(escape, more), "hint"))
    return text


def _list(items: Iterable[str], kind: str = "") -> str:
    lines = "".join(f"<li>{item}</li>\n" for item in items)
    return f'<ul class="{kind}">\n{lines}</ul>\n' if kind else f"<ul>\n{lines}</ul>\n"
