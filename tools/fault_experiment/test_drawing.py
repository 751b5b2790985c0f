"""The faults that are put into code, how they are drawn, and the tests that run against one."""

import ast
from itertools import islice

import pytest

from root import ROOT
from tools.fault_experiment.drawing import draw_faults, faults_per_package
from tools.fault_experiment.fault import is_another_program, with_fault
from tools.fault_experiment.faults import faults_in
from tools.fault_experiment.selection import Round, select_tests

SOURCE = '''\
"""A docstring with 1 < 2 and not 3."""


def limited(values: dict[str, int], most: int = 10) -> int:
    """Return the sum, at most `most`; not below 0."""
    assert most > 0
    if not values:
        return 0
    total = values["first"] + values["second"]
    if total < 0 or total is None:
        raise ValueError(f"{total} is below 0")
    total = min(total, most)
    return round(total, -1)


class Named:
    def __repr__(self) -> str:
        return "ä" * 7

    def size(self, width: float, height: float) -> float:
        area = self.scaled(width, height)
        print(f"ä: {area - 1}")
        return -area * 0.5 if self.is_negative and self.has_area else area
'''


def changed_lines(kind: str) -> list[tuple[str, str]]:
    """Return each line of `SOURCE` that faults of one kind change, before and after the change."""
    original_lines = SOURCE.splitlines()
    changes = list[tuple[str, str]]()
    for fault in faults_in("module.py", SOURCE):
        if fault.kind == kind:
            faulty_lines = with_fault(SOURCE, fault).splitlines()
            index = fault.line - 1
            changes.append((original_lines[index].strip(), faulty_lines[index].strip()))
    return changes


@pytest.mark.parametrize(
    ("kind", "expected_changes"),
    [
        ("bound", [("if total < 0 or total is None:", "if total <= 0 or total is None:")]),
        ("comparison", [("if total < 0 or total is None:", "if total < 0 or total is not None:")]),
        (
            "and/or",
            [
                ("if total < 0 or total is None:", "if total < 0 and total is None:"),
                (
                    "return -area * 0.5 if self.is_negative and self.has_area else area",
                    "return -area * 0.5 if self.is_negative or self.has_area else area",
                ),
            ],
        ),
        (
            "sign",
            [
                ("return round(total, -1)", "return round(total, 1)"),
                (
                    "return -area * 0.5 if self.is_negative and self.has_area else area",
                    "return area * 0.5 if self.is_negative and self.has_area else area",
                ),
            ],
        ),
        ("dropped not", [("if not values:", "if values:")]),
        ("dropped raise", [('raise ValueError(f"{total} is below 0")', "pass")]),
        ("dropped return", [("return 0", "pass")]),
        ("dropped assignment", [("total = min(total, most)", "pass")]),
        ("dropped call", [('print(f"ä: {area - 1}")', "pass")]),
        (
            "dropped guard",
            [("if not values:", "pass"), ("if total < 0 or total is None:", "pass")],
        ),
        (
            "key",
            [
                (
                    'total = values["first"] + values["second"]',
                    'total = values["second"] + values["second"]',
                ),
                (
                    'total = values["first"] + values["second"]',
                    'total = values["first"] + values["first"]',
                ),
            ],
        ),
        (
            "attribute",
            [
                (
                    "return -area * 0.5 if self.is_negative and self.has_area else area",
                    "return -area * 0.5 if self.has_area and self.has_area else area",
                ),
                (
                    "return -area * 0.5 if self.is_negative and self.has_area else area",
                    "return -area * 0.5 if self.is_negative and self.is_negative else area",
                ),
            ],
        ),
        (
            "arithmetic",
            [
                (
                    'total = values["first"] + values["second"]',
                    'total = values["first"] - values["second"]',
                ),
                ('print(f"ä: {area - 1}")', 'print(f"ä: {area + 1}")'),
                (
                    "return -area * 0.5 if self.is_negative and self.has_area else area",
                    "return -area / 0.5 if self.is_negative and self.has_area else area",
                ),
            ],
        ),
        (
            "swapped arguments",
            [
                ("return round(total, -1)", "return round(-1, total)"),
                ("area = self.scaled(width, height)", "area = self.scaled(height, width)"),
            ],
        ),
    ],
)
def test_a_kind_of_fault_changes_these_lines(
    kind: str, expected_changes: list[tuple[str, str]]
) -> None:
    """Each expected change is a line of the sample program before and after the fault."""
    assert changed_lines(kind) == expected_changes


def test_whole_numbers_change_by_one_and_fractions_are_doubled_or_halved() -> None:
    changes = changed_lines("number")

    function = "def limited(values: dict[str, int], most: int = 10) -> int:"
    assert ("return 0", "return 1") in changes
    assert (function, function.replace("10", "11")) in changes
    assert (function, function.replace("10", "9")) in changes

    scaled = "return -area * 0.5 if self.is_negative and self.has_area else area"
    assert (scaled, scaled.replace("0.5", "1.0")) in changes
    assert (scaled, scaled.replace("0.5", "0.25")) in changes


def test_faults_change_neither_docstrings_nor_assertions_nor_repr() -> None:
    """A fault there would survive although the tests are good: it changes no result."""
    docstring = "A docstring with 1 < 2 and not 3."
    assertion = "assert most > 0\n"
    body_of_repr = 'return "ä" * 7\n'

    for fault in faults_in("module.py", SOURCE):
        faulty_program = with_fault(SOURCE, fault)

        assert ast.get_docstring(ast.parse(faulty_program)) == docstring
        assert assertion in faulty_program
        assert body_of_repr in faulty_program


def test_functions_that_triton_compiles_for_a_gpu_have_no_faults() -> None:
    """The tests run on the CPU, so a fault in such a function would always survive."""
    source = "@triton.jit\ndef kernel(x):\n    return x + 1\n"

    assert faults_in("module.py", source) == []


def test_each_drawn_fault_makes_another_valid_program() -> None:
    module = ROOT / "src" / "bleuprint" / "text" / "numbers.py"
    source = module.read_text("utf-8")

    faults = list(draw_faults(ROOT, [module], seed="1"))

    assert len(faults) > 10
    for fault in faults:
        assert is_another_program(source, fault)


def test_a_function_gets_at_most_one_of_the_drawn_faults() -> None:
    module = ROOT / "src" / "bleuprint" / "text" / "numbers.py"

    faults = list(draw_faults(ROOT, [module], seed="1"))

    functions = {fault.function for fault in faults}
    assert len(faults) > 10
    assert len(functions) == len(faults)


def test_a_drawn_fault_keeps_the_code_before_and_after_it() -> None:
    module = ROOT / "src" / "bleuprint" / "text" / "numbers.py"
    source = module.read_text("utf-8")
    source_bytes = source.encode()  # a fault starts and ends at positions in bytes

    faults = list(draw_faults(ROOT, [module], seed="1"))

    assert len(faults) > 10
    for fault in faults:
        code_before = source_bytes[: fault.start].decode()
        code_after = source_bytes[fault.end :].decode()
        faulty_program = with_fault(source, fault)
        assert faulty_program.startswith(code_before)
        assert faulty_program.endswith(code_after)


def test_the_seed_decides_which_faults_are_drawn() -> None:
    modules = sorted((ROOT / "src" / "bleuprint" / "rules").glob("*.py"))

    first_twelve = list(islice(draw_faults(ROOT, modules, seed="1 rules"), 12))
    with_the_same_seed = list(islice(draw_faults(ROOT, modules, seed="1 rules"), 12))
    with_another_seed = list(islice(draw_faults(ROOT, modules, seed="2 rules"), 12))

    assert with_the_same_seed == first_twelve
    assert with_another_seed != first_twelve


def test_each_package_gets_two_faults_and_the_rest_in_proportion_to_its_functions() -> None:
    function_counts = {"large": 300, "small": 80, "tiny": 1}

    fault_counts = faults_per_package(function_counts, fault_count=60)

    # 60 - 3 * 2 = 54 faults are shared in proportion to 300, 80 and 1: 42.5, 11.3 and 0.1.
    assert fault_counts == {"large": 2 + 43, "small": 2 + 11, "tiny": 2 + 0}


def test_no_more_faults_are_shared_out_than_were_requested() -> None:
    """Two faults for each of three packages would be six."""
    function_counts = {"large": 300, "small": 80, "tiny": 1}

    fault_counts = faults_per_package(function_counts, fault_count=2)

    assert sum(fault_counts.values()) == 2


def test_tests_with_the_name_of_the_module_run_before_those_of_its_package() -> None:
    rounds = select_tests(ROOT, "src/bleuprint/text/numbers.py")

    assert rounds[Round.NAMED][0] == "tests/text/test_numbers.py"
    assert "tests/text/test_numbers.py" not in rounds[Round.PACKAGE]
    assert "tests/text/test_moses.py" in rounds[Round.PACKAGE]
    assert "tests/integration/test_dvc.py" in rounds[Round.ELSEWHERE]


def test_the_tests_for_a_command_include_those_of_the_package_behind_it() -> None:
    """`bleuprint translate` only calls the translator, which has its tests in tests/serving."""
    rounds = select_tests(ROOT, "src/bleuprint/cli/translate.py")

    assert "tests/cli/test_main.py" in rounds[Round.PACKAGE]
    assert "tests/serving/test_translator.py" in rounds[Round.ELSEWHERE]
