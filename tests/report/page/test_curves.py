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
from bleuprint.runtime.json_files import write_json
from pages import Page, page_of


def luminance(color: str) -> float:
    """Return the relative luminance of a color, #rgb or #rrggbb, by WCAG 2.1.

    WCAG are the Web Content Accessibility Guidelines of the W3C.
    """
    digits = color.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    total = 0.0
    for position, weight in ((0, 0.2126), (2, 0.7152), (4, 0.0722)):
        part = int(digits[position : position + 2], 16) / 255
        linear = part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        total += weight * linear
    return total


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colors by WCAG 2.1: from 1 to 21."""
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(params=["light", "dark"])
def theme_colors(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the colors of a theme by the names that the style sheet gives them."""
    css = Path(html.__file__).with_name("base.css").read_text()
    light, dark, *_ = css.split("@media screen and (prefers-color-scheme: dark)")
    theme = light if request.param == "light" else dark
    colors = dict(re.findall(r"--([\w-]+): (#\w+);", theme))
    # The strongest cell of a heat map is given as three numbers.
    (heat,) = re.findall(r"--heat: (\d+) (\d+) (\d+)", theme)
    colors["heat"] = "#" + "".join(f"{int(part):02x}" for part in heat)
    return colors


@pytest.mark.parametrize("line", ["c0", "c1", "c2", "c3", "c4", "c5", "edge", "missing-line"])
def test_lines_have_the_contrast_that_wcag_requires_of_graphics(
    theme_colors: dict[str, str], line: str
) -> None:
    assert contrast(theme_colors[line], theme_colors["paper"]) >= 3


@pytest.mark.parametrize("background", ["paper", "wash"])
@pytest.mark.parametrize("ink", ["ink", "soft", "accent", "bad"])
def test_text_has_the_contrast_that_wcag_requires(
    theme_colors: dict[str, str], ink: str, background: str
) -> None:
    assert contrast(theme_colors[ink], theme_colors[background]) >= 4.5


@pytest.mark.parametrize(
    ("ink", "background"),
    [
        pytest.param("ink", "added", id="added word"),
        pytest.param("missing-ink", "missing", id="missing word"),
        pytest.param("ink", "heat", id="strongest cell of a heat map"),
    ],
)
def test_marked_text_has_the_contrast_that_wcag_requires(
    theme_colors: dict[str, str], ink: str, background: str
) -> None:
    assert contrast(theme_colors[ink], theme_colors[background]) >= 4.5


@pytest.fixture
def styles_of_28_lines() -> list[dict[str, str]]:
    """Return the styles of the lines of a chart with as many lines as there are styles."""
    return list(line_styles([str(number) for number in range(28)]).values())


def test_28_lines_have_different_styles(styles_of_28_lines: list[dict[str, str]]) -> None:
    styles = {(style["color"], style["linestyle"]) for style in styles_of_28_lines}
    assert len(styles) == 28


def test_neighboring_lines_differ_in_color_and_dashes(
    styles_of_28_lines: list[dict[str, str]],
) -> None:
    """Readers who cannot tell colors apart can tell dashes."""
    for style, next_style in pairwise(styles_of_28_lines):
        assert style["color"] != next_style["color"]
        assert style["linestyle"] != next_style["linestyle"]


@pytest.fixture
def squares() -> pd.DataFrame:
    """Return a line with the points (1, 1), (2, 4), (3, 9), (4, 16) and (5, 25)."""
    return pd.DataFrame([(float(x), float(x * x)) for x in range(1, 6)])


def test_a_line_with_too_many_points_is_thinned_to_means(squares: pd.DataFrame) -> None:
    mean_of_first_three = [2.0, (1 + 4 + 9) / 3]
    mean_of_last_two = [4.5, (16 + 25) / 2]
    assert thin_line(squares, 2).to_numpy().tolist() == [mean_of_first_three, mean_of_last_two]


def test_a_line_with_few_points_is_not_thinned(squares: pd.DataFrame) -> None:
    assert thin_line(squares, 5).equals(squares)
    assert thin_line(squares[:0], 3).empty


def test_the_band_over_seeds_is_the_mean_with_the_lowest_and_highest_value() -> None:
    """The second seed has no value at 20, where the line between its points passes 4.0."""
    first = [(10, 4.0), (20, 3.0), (30, 2.0)]
    second = [(10, 6.0), (30, 2.0)]

    band = mean_over_seeds([first, second])

    # x, mean, lowest and highest value
    assert band.to_numpy().tolist() == [
        [10, 5.0, 4.0, 6.0],
        [20, 3.5, 3.0, 4.0],
        [30, 2.0, 2.0, 2.0],
    ]


def test_the_band_over_seeds_ends_where_the_shortest_line_ends() -> None:
    first = [(10, 4.0), (20, 3.0), (30, 2.0), (40, 1.0)]
    second = [(10, 6.0), (30, 2.0)]

    band = mean_over_seeds([first, second])

    assert band.iloc[:, 0].tolist() == [10, 20, 30]


def test_the_mean_of_one_seed_is_its_line() -> None:
    line = [(10, 4.0), (20, 3.0), (30, 2.0), (40, 1.0)]

    assert mean_over_seeds([line]).y.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_seeds_without_a_common_range_have_no_mean() -> None:
    assert mean_over_seeds([[(10, 4.0)], [(20, 3.0), (30, 2.0)]]).empty


def curve_ids(page: Page) -> list[str]:
    """Return the ids of the lines and bands in all charts of a page, sorted."""
    return sorted(name for name in page.ids if "-of-" in name)


def test_each_chart_has_a_line_and_a_band_for_each_system_with_several_seeds(
    tmp_path: Path,
) -> None:
    """A line is the mean over seeds; the band around it shows the lowest and highest value.

    The corpus has charts of training loss, validation loss and validation BLEU. An id such as
    `curves-0-2-of-1.line` numbers the corpus (0), the chart (2) and the system (1).
    """
    settings = trees.settings_in(
        tmp_path, ("tiny", "small"), corpora={"news-en-de": ("first",)}, seeds=(1, 2, 3)
    )
    rows = []
    for run in trained_runs(settings):
        write_json(tmp_path / run.results_folder / "curves.json", trees.curves_of(run))
        rows.append(result_rows.record(run.system, run.corpus, "first", 20.0, seed=run.seed))
    records = result_rows.records_from_rows(*rows)

    page = page_of(curves_section(ReportData(settings, records, tmp_path)))

    expected_ids = []
    for chart in range(3):
        for system in range(2):
            expected_ids.append(f"curves-0-{chart}-of-{system}.band")
            expected_ids.append(f"curves-0-{chart}-of-{system}.line")
    assert curve_ids(page) == expected_ids
    assert "the band reaches from the lowest to the highest" in page.sections["curves"]


@pytest.fixture(scope="module")
def one_seed_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Return the curves of two systems with one seed."""
    root = tmp_path_factory.mktemp("one_seed")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
    trees.write_all(root, settings)
    return page_of(curves_section(ReportData(settings, collect(settings, root), root)))


def test_each_chart_has_a_line_for_each_system_with_one_seed(one_seed_page: Page) -> None:
    """One seed has no lowest and highest value, so a band would show nothing.

    The page has one corpus, two systems, and charts of training loss, validation loss and
    validation BLEU. An id such as `curves-0-2-of-1.line` numbers the corpus (0), the chart (2) and
    the system (1); the id of a band would end in `.band`.
    """
    expected_ids = []
    for chart in range(3):
        for system in range(2):
            expected_ids.append(f"curves-0-{chart}-of-{system}.line")

    assert curve_ids(one_seed_page) == expected_ids
    assert "news-en-de: validation BLEU" in one_seed_page.sections["curves"]


def test_charts_use_the_colors_of_the_theme(one_seed_page: Page) -> None:
    """A color written as #rrggbb would stay the same in the dark theme and be hard to see.

    The style sheet therefore defines --c0 for the first line and --ink for black in each theme.
    """
    styles = " ".join(one_seed_page.values("style"))

    assert "stroke: var(--c0)" in styles
    assert "stroke: var(--ink)" in styles
    fixed_color = re.compile("#[0-9a-f]{3}")
    assert not fixed_color.search(styles)
