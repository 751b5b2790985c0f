"""Metrics that are the user's own code, such as `metrics: [own.exact_match]`.

The module own/exact_match.py assigns a `Metric` to the name METRIC. Its functions are called
through the classes here, which check what they return: a count that is not a whole number, or a
value that is NaN, would otherwise be found when the report is written, or never.

docs/own_code.md explains how to write a metric.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from bleuprint.config.corpus import Corpus
from bleuprint.config.own_names import METRIC_VARIABLE
from bleuprint.corpus.test_sets import SetDescription
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.runtime.own_code import (
    FOLDER,
    error_at,
    import_own,
    is_own_name,
    module_file,
    module_name,
    own_errors,
    pinned_name,
)
from bleuprint.runtime.wording import counted
from bleuprint.scoring.metric import SCORE, Floats, Metric, TranslatedSet

# Sums of counts are 64-bit floating-point numbers, which are exact up to 2**53: the sums of 9,000
# lines with this count each.
_MAX_COUNT = 10**12
# The types of the attributes that a user sets. Dataclasses do not check them.
_ATTRIBUTE_TYPES: dict[str, tuple[type, ...]] = {
    "label": (str,),
    "about": (str,),
    "digits": (int,),
    "highest": (int, float),
    "lower_is_better": (bool,),
    "is_share": (bool,),
    "has_float32_sums": (bool,),
}
_MAX_LABEL = 30
_MAX_DIGITS = 6
# The kinds of NumPy's types that are numbers: truth values, whole numbers with and without a sign,
# and floating-point numbers.
_NUMBER_KINDS = "biuf"
# The end of a message about what the function `statistics` returns.
_ROWS_NEEDED = (
    "It must return a list with a row of whole numbers for each line, such as [(1, 1), (0, 1)]"
)


def is_own_metric(key: object) -> TypeGuard[str]:
    """Return whether the key of a metric is the name of a module in own/."""
    return is_own_name(key)


def own_metric(name: str) -> Metric:
    """Import a metric from own/, and let its functions be checked at each call.

    Args:
        name: The name of the module. If it has a fingerprint, the module must still have it.

    Returns:
        The metric. Its key is the name of the module; its signature also has the fingerprint.

    Raises:
        UserError: The module does not exist, has changed, or its import fails; or METRIC is not a
            metric that a table can show.
    """
    module = import_own(name)
    pinned = pinned_name(name, Path())
    file = str(module_file(module_name(name), Path()))
    metric = getattr(module, METRIC_VARIABLE, None)
    if not isinstance(metric, Metric):
        raise UserError(
            f"{file}: {METRIC_VARIABLE} is a value of the type {type(metric).__name__}. Write "
            f"{METRIC_VARIABLE} = Metric(...), with Metric from bleuprint.scoring.metric"
        )
    problem = _describe_wrong_attribute(metric)
    if problem:
        raise UserError(f"{file}: {METRIC_VARIABLE}: {problem}")
    direction = "Lower is better." if metric.lower_is_better else "Higher is better."
    return replace(
        metric,
        key=module_name(name),
        about=f"{metric.about} {direction}".strip(),
        statistics=_CheckedCounts(metric.statistics, file, metric.is_share),
        value=_CheckedValue(metric.value, file),
        signature=_Signature(pinned),
        own_module=pinned,
    )


def check_own_metric(metric: Metric, corpus: Corpus) -> None:
    """Compute a metric of own code on three lines, long before translations are scored.

    One translation is empty, since a division by its length is a common mistake.

    Args:
        metric: The metric.
        corpus: The settings of a corpus, which the metric may read.

    Raises:
        UserError: The functions of the metric have a wrong signature, fail, or return what they
            must not.
    """
    lines = ["a b c", "a b", "a"]
    description = SetDescription(
        source_tokens=[3, 2, 1],
        reference_tokens=lines,
        training_counts=None,
        documents=None,
    )
    test_set = TranslatedSet(
        sources=lines,
        references=lines,
        hypotheses=["a b c", "b", ""],
        corpus=corpus,
        description=description,
    )
    counts = metric.count(test_set)
    assert counts is not None  # `_CheckedCounts` refuses None.
    metric.overall_value(counts)
    # Intervals and tests compute the values of many samples of lines at once. Here the samples are
    # all lines, and all lines twice. A condition such as `if sums[:, 1] == 0` fails for two rows.
    sums = counts.sum(0)
    metric.values(np.stack([sums, 2 * sums]))


def _describe_wrong_attribute(metric: Metric) -> str:
    """Describe which attribute of a metric has a wrong value; return an empty text if none has."""
    for name, types in _ATTRIBUTE_TYPES.items():
        value = getattr(metric, name)
        # In Python, True is a whole number.
        is_unwanted_bool = isinstance(value, bool) and bool not in types
        if not isinstance(value, types) or is_unwanted_bool:
            wanted = " or ".join(each.__name__ for each in types)
            return f"{name} is {value!r}. It must have the type {wanted}"
    if not metric.label.strip() or not metric.label.isprintable() or len(metric.label) > _MAX_LABEL:
        return f"label is {metric.label!r}. It must be one line of 1 to {_MAX_LABEL} characters"
    if not 0 <= metric.digits <= _MAX_DIGITS:
        return f"digits is {metric.digits}. It must be from 0 to {_MAX_DIGITS}"
    if np.isnan(metric.highest):
        return "highest is nan. Write the end of the scale, or math.inf"
    for name, expected in (("kind", "score"), ("group", ""), ("stage", SCORE)):
        value = getattr(metric, name)
        if value != expected:
            return f"{name} is {value!r}. Own metrics cannot set it. Remove it"
    for name in ("statistics", "value"):
        if not callable(getattr(metric, name)):
            return f"{name} is {getattr(metric, name)!r}. It must be a function"
    return ""


@dataclass(frozen=True)
class _Signature:
    """Returns the signature of a metric: the name of its module with the fingerprint."""

    pinned_name: str

    def __call__(self, _: TranslatedSet) -> str:
        """Return the signature, which is the same for all test sets."""
        return self.pinned_name


@dataclass(frozen=True)
class _OwnFunction:
    """The base of the classes that call a function of a metric, and check what it returns.

    Attributes:
        function: The function of the user.
        file: The file of the metric, for messages about a function without a file.
    """

    function: Callable[[Any], Any]
    file: str

    def error(self, message: str) -> UserError:
        """Return an error about the function, which begins with its file and line.

        The line is missing if the function is not defined in own/, such as one of a library, or is
        an object that can be called.

        Args:
            message: What is wrong, such as `returns 3. It must return a list`.
        """
        function: Any = inspect.unwrap(self.function)
        name = getattr(function, "__name__", type(function).__name__)
        package, *_ = str(getattr(function, "__module__", "")).split(".")
        has_known_line = package == FOLDER and inspect.isfunction(function)
        if has_known_line:
            return error_at(function, f"{name} {message}")
        return UserError(f"{self.file}: {name} {message}")

    def call(self, argument: object, description: str) -> Any:
        """Call the function with one argument.

        Args:
            argument: The argument.
            description: What the argument is, for the message about a wrong signature.

        Raises:
            UserError: The function has other arguments, or raises an exception.
        """
        try:
            inspect.signature(self.function).bind(argument)
        except TypeError:
            raise self.error(f"must take one argument, {description}") from None
        except ValueError:
            pass  # Some functions that are written in C have no signature.
        try:
            # A result that is NaN has a message of its own.
            with own_errors(), np.errstate(all="ignore"):
                return self.function(argument)
        except UserError:
            raise
        except Exception as error:  # A function of a library, called by own code, may fail.
            if is_out_of_memory(error):
                raise
            raise self.error(f"fails: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class _CheckedCounts(_OwnFunction):
    """Calls the function `statistics` of a metric, and checks the counts that it returns.

    Attributes:
        is_share: Whether the counts of a line must be 0 or 1, and 1 if the line counts.
    """

    is_share: bool

    def __call__(self, test_set: TranslatedSet) -> Floats:
        """Return the counts of each line of a test set, (lines, counts).

        Raises:
            UserError: The function returns something else than a row of whole numbers per line.
        """
        counts = self.call(test_set, "a TranslatedSet")
        table = self._as_table(counts)
        line_count = len(test_set.references)
        if len(table) != line_count:
            raise self.error(
                f"returns {counted(len(table), 'row')} for {counted(line_count, 'line')}. It must "
                "return one row for each line"
            )
        for line, row in enumerate(table.tolist(), 1):
            problem = self._describe_wrong_row(row)
            if problem:
                returned_row = _shortened(counts[line - 1])
                raise self.error(f"returns {returned_row} for line {line}. {problem}")
        return table

    def _as_table(self, counts: Any) -> Floats:
        """Return the counts that the function has returned as an array, (lines, counts).

        Args:
            counts: The value that the function has returned, of any type.

        Raises:
            UserError: It is not a list of rows of numbers, all of one length.
        """
        if isinstance(counts, np.ndarray):
            is_list = counts.ndim > 0  # An array without dimensions is a single number.
        else:
            is_list = isinstance(counts, Sequence) and not isinstance(counts, str | bytes)
        if not is_list:
            raise self.error(f"returns a value of the type {type(counts).__name__}. {_ROWS_NEEDED}")
        table = _as_array(counts)
        if table.ndim != 2 or table.shape[1] == 0 or table.dtype.kind not in _NUMBER_KINDS:
            raise self.error(f"returns {_describe_wrong_table(counts)}. {_ROWS_NEEDED}")
        return table.astype(np.float64)

    def _describe_wrong_row(self, row: Sequence[float]) -> str:
        """Describe what is wrong with the counts of a line; return an empty text if nothing is."""
        for count in row:
            if not np.isfinite(count) or not float(count).is_integer():
                return (
                    "Counts are whole numbers. Count a score in millionths: round(MILLIONTHS * "
                    "score)"
                )
            if abs(count) > _MAX_COUNT:
                return f"Counts may be at most {_MAX_COUNT:,}"
        if self.is_share:
            is_share_of_line = len(row) == 2 and row[1] in (0, 1) and row[0] in (0, row[1])
            if not is_share_of_line:
                return (
                    "With is_share, a row has two numbers: 1 if the line has the property, else "
                    "0; and 1 if the line counts, else 0"
                )
        return ""


@dataclass(frozen=True)
class _CheckedValue(_OwnFunction):
    """Calls the function `value` of a metric, and checks the values that it returns."""

    def __call__(self, sums: Floats) -> Floats:
        """Return the value of each row of sums, (rows,).

        Args:
            sums: A row for each group of lines, with the sums of their counts, (rows, counts).

        Raises:
            UserError: The function does not return one finite number for each row.
        """
        values = self.call(sums, "an array with a row of sums for each group of lines")
        table = _as_array(values)
        if table.shape != (len(sums),) or table.dtype.kind not in _NUMBER_KINDS:
            rows = counted(len(sums), "row")
            raise self.error(
                f"returns {_shortened(values)} for {rows} of sums. It must return one number for "
                "each row"
            )
        is_wrong = ~np.isfinite(table)
        if is_wrong.any():
            position = int(is_wrong.argmax())
            raise self.error(
                f"returns {table[position]} for the sums {sums[position].tolist()}. It must return "
                "a finite number. Guard divisions by 0, as with np.maximum(sums[:, 1], 1)"
            )
        return table.astype(np.float64)


def _as_array(value: object) -> NDArray[Any]:
    """Return a value of own code as an array; an array of one object if its rows differ in length.

    Args:
        value: The value, such as a list of rows. NumPy's arrays have rows of one length.
    """
    try:
        return np.asarray(value)
    except ValueError:
        return np.asarray(None)


def _describe_wrong_table(rows: Sequence[object] | NDArray[Any]) -> str:
    """Describe what is wrong with a list that is not a table of numbers, for a message.

    Args:
        rows: The list, which should contain a row of numbers for each line of a test set.

    Returns:
        The first item that is not a row of numbers, such as `None for line 7`.
    """
    if len(rows) == 0:
        return "an empty list"
    for line, row in enumerate(rows, 1):
        numbers = _as_array(row)
        is_row = numbers.ndim == 1 and numbers.size > 0 and numbers.dtype.kind in _NUMBER_KINDS
        if not is_row:
            return f"{_shortened(row)} for line {line}"
    return "rows of different lengths"


def _shortened(value: object) -> str:
    """Return a value as a message shows it, in at most 60 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
