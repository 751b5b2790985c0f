"""The section that comes first: the findings in sentences, and what one would try next."""

from collections.abc import Iterable, Iterator, Sequence

from bleuprint import costcolumns
from bleuprint.page.advice import Advice, on_histories, on_records
from bleuprint.page.funnel import accounts, kept
from bleuprint.page.history import Validation, history
from bleuprint.page.html import details, escape
from bleuprint.page.material import Material, Section
from bleuprint.page.scores import p_text, score_text
from bleuprint.standings import SIGNIFICANT, Standing, paired_t

_SHOWN = 3


def summary(material: Material) -> Section:
    tests = dict.fromkeys((one.corpus, one.test) for one in material.standings)
    best = [
        _best([one for one in material.standings if (one.corpus, one.test) == column])
        for column in tests
    ]
    facts = [*best, _cost(material), *_cleaning(material)]
    body = _list(fact for fact in facts if fact)
    advice = [*on_histories(list(_validations(material))), *on_records(material.standings)]
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
    if len(column) == 1:
        return f"{where}: {name}, the only system, has {score}."
    second = ranked[1]
    if best is baseline:
        return f"{where}: the baseline {name} is best, with {score}. {_runner_up(best, second)}"
    assert best.difference is not None
    text = f"{where}: {name} is best, with {score}. {_against_baseline(best)}"
    return text if second is baseline else f"{text} {_runner_up(best, second)}"


def _against_baseline(best: Standing) -> str:
    difference = best.difference
    assert difference is not None
    above = f"{difference.bleu:.1f} above the baseline {escape(difference.baseline)}"
    p = escape(p_text(difference.p))
    if not difference.significant:
        return f"That is {above}, but <b>not significantly</b> ({p}): it may be chance."
    if difference.corrected >= SIGNIFICANT:
        return (
            f"That is {above}: <b>significant</b> by itself ({p}), but not when corrected for the "
            f"number of systems tested ({escape(p_text(difference.corrected))})."
        )
    return f"That is {above}: <b>significant</b> ({p})."


def _runner_up(best: Standing, second: Standing) -> str:
    """What is known of the difference from the second best."""
    gap = best.bleu.mean - second.bleu.mean
    text = f"Second is {escape(second.system)}, {gap:.1f} below"
    tested = second.difference if best.difference is None else None
    if tested is not None:
        p = tested.p
    elif len(best.records) > 1:
        pairs = zip(best.records, second.records, strict=True)
        p = paired_t([one.bleu.score - other.bleu.score for one, other in pairs])
    else:
        return f"{text}; that difference is not tested (with one seed, only the baseline's are)."
    sure = "significant" if p < SIGNIFICANT else "<b>not significantly</b>: it may be chance"
    return f"{text}: {sure} ({escape(p_text(p))})."


def _cost(material: Material) -> str:
    """What the trainings took, from the least to the most."""
    trained = {record.cell: record for record in material.records}
    ranked = sorted(trained.values(), key=lambda record: record.training_flops)
    flops = dict.fromkeys(costcolumns.counted_flops([ranked[place]]) for place in (0, -1))
    counted = f"{' to '.join(flops)} FLOPs each"
    timings = (material.timings.get(cell) for cell in material.cells)
    seconds = [one.training.seconds for one in timings if one and one.training]
    if not seconds:
        return f"The {len(ranked)} trainings took {counted}."
    times = f"{_duration(min(seconds))} to {_duration(max(seconds))}"
    return (
        f"The {len(ranked)} trainings took {times} each, {_duration(sum(seconds))} together "
        f"({counted})."
    )


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
