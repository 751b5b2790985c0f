"""The training curves: lines, means and bands over seeds, and colors that can be told apart."""

import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

import result_rows
import result_trees as trees
from bleuprint.config.runs import trained_runs
from bleuprint.report.page.chart import line_styles
from bleuprint.report.page.curves import curves_section, mean_over_seeds, thin_line
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect
from bleuprint.runtime import html
from bleuprint.runtime.files import write_json
from pages import page_of


def luminance(color: str) -> float:
    """Relative luminance of #rgb or #rrggbb (WCAG 2.1)."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_stand_out_from_the_paper(theme: str) -> None:
    """Lines 3:1, text 4.5:1 (WCAG 2.1), also on the ground of choices and marked words."""
    css = Path(html.__file__).with_name("base.css").read_text()
    light, dark = css.split("@media screen and (prefers-color-scheme: dark)")[:2]
    found = dict(re.findall(r"--([\w-]+): (#\w+);", light if theme == "light" else dark))

    def contrast(one: str, other: str) -> float:
        low, high = sorted(luminance(found[name]) for name in (one, other))
        return (high + 0.05) / (low + 0.05)

    for line in ("c0", "c1", "c2", "c3", "c4", "c5", "edge", "missing-line"):
        assert contrast(line, "paper") >= 3, line
    for ink in ("ink", "soft", "accent", "bad"):
        for ground in ("paper", "wash"):
            assert contrast(ink, ground) >= 4.5, (ink, ground)
    for ink, ground in (("ink", "added"), ("missing-ink", "missing")):
        assert contrast(ink, ground) >= 4.5, ink
    # the strongest cell of a heat map
    (heat,) = re.findall(r"--heat: (\d+) (\d+) (\d+)", light if theme == "light" else dark)
    found["heat"] = "#" + "".join(f"{int(part):02x}" for part in heat)
    assert contrast("ink", "heat") >= 4.5


def test_lines_are_told_apart() -> None:
    """Neighbors differ in color and dashes, 28 lines in one."""
    styles = [
        (one["color"], one["linestyle"]) for one in line_styles([*map(str, range(28))]).values()
    ]
    assert len(set(styles)) == 28
    for one, other in pairwise(styles):
        assert one[0] != other[0] and one[1] != other[1]


def test_lines_are_thinned_by_means() -> None:
    line = pd.DataFrame([(float(i), float(i * i)) for i in range(1, 6)])
    assert thin_line(line, 5).equals(line)
    assert thin_line(line, 2).to_numpy().tolist() == [[2.0, 14 / 3], [4.5, 20.5]]
    assert thin_line(line[:0], 3).empty


def test_a_line_is_the_mean_over_seeds_where_all_have_values() -> None:
    first = [(10, 4.0), (20, 3.0), (30, 2.0), (40, 1.0)]
    other = [(10, 6.0), (30, 2.0)]  # at 20: 4.0; it ends before 40
    band = mean_over_seeds([first, other])
    assert band.to_numpy().tolist() == [[10, 5, 4, 6], [20, 3.5, 3, 4], [30, 2, 2, 2]]
    assert mean_over_seeds([first]).y.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert mean_over_seeds([first[:1], first[1:]]).empty


def test_several_seeds_have_a_line_and_a_band(tmp_path: Path) -> None:
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)}, seeds=(1, 2, 3))
    runs = trained_runs(settings)
    for run in runs:
        write_json(tmp_path / run.results_folder / "curves.json", trees.curves_of(run))
    rows = [result_rows.record(*run[:2], "first", 20.0, seed=run.seed) for run in runs]
    page = page_of(curves_section(ReportData(settings, result_rows.frame(*rows), tmp_path)))
    assert sorted(name for name in page.ids if "-of-" in name) == sorted(
        f"curves-0-{kind}-of-{system}.{part}"
        for kind in range(3)
        for system in range(2)
        for part in ("line", "band")
    )
    assert "the band reaches from the lowest to the highest" in page.sections["curves"]


def test_curves_have_a_line_for_each_system_in_colors_of_the_theme(tmp_path: Path) -> None:
    settings = trees.settings_in(tmp_path, corpora={"news-en-de": ("first",)})
    trees.write_all(tmp_path, settings)
    made = ReportData(settings, collect(settings, tmp_path), tmp_path)
    page = page_of(curves_section(made))
    assert sorted(name for name in page.ids if "-of-" in name) == sorted(
        f"curves-0-{kind}-of-{system}.line" for kind in range(3) for system in range(2)
    )
    assert "news-en-de: validation BLEU" in page.sections["curves"]
    styles = " ".join(page.values("style"))
    assert "stroke: var(--c0)" in styles and "stroke: var(--ink)" in styles
    assert not re.search("#[0-9a-f]{3}", styles)
