"""Errors about files: each message names the file, and says what the user should do.

- `DamagedFile`: the content of a file is not what this program writes there.
- `name_in_errors` adds the file's name to errors of the operating system and of libraries.
- `report_as_damage` turns errors about missing or wrong values into `DamagedFile`.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bleuprint.runtime.errors import UserError

# The error number in messages of Python, of libraries in Rust (safetensors), and of torch.
_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)|^unable to open file .* \((\d+)\)$")
# What to do about a damaged output of the pipeline: DVC sees that it differs, and makes it again.
RERUN = "Run: make reproduce"


class DamagedFile(UserError):
    """A file that does not contain what this program writes there."""

    def __init__(self, path: Path, problem: str, remedy: str = RERUN) -> None:
        """Write the message.

        Args:
            path: The file.
            problem: What is wrong, such as "field seeds is missing".
            remedy: What the user should do, as a sentence without its full stop.
        """
        # The messages of libraries may end with a full stop or a line break.
        problem_line = " ".join(problem.split()).removesuffix(".")
        super().__init__(f"{path} is damaged: {problem_line}. {remedy}")


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Add the name of a file to errors about reading or writing it that occur in the block.

    "No space left on device" does not help the user without the file. Python's errors of read() and
    write() do not name it. Libraries such as safetensors and torch raise errors of their own types,
    whose message contains the error number of the operating system.

    Args:
        path: The file.

    Raises:
        OSError: The operating system reports an error, such as a full disk. Its `filename` is
            `path`, unless the original error has already named a path.
        DamagedFile: safetensors cannot read the file's content.
    """
    try:
        yield
    except UserError:
        raise  # Its message is complete.
    except Exception as error:
        match = _ERROR_NUMBER.search(str(error))
        if match is not None:
            # Errors of open() and rename() name their path. It is kept, since it may be another
            # file than `path`, such as an input that the block reads.
            names_a_path = os.sep in str(getattr(error, "filename", ""))
            if names_a_path:
                raise
            # The pattern has one group for each form of message, of which only one has matched:
            # the last one.
            error_number = int(match[match.lastindex or 0])
            raise OSError(error_number, os.strerror(error_number), str(path)) from None
        # Messages of safetensors about damaged content contain this word.
        is_safetensors_error = "deserializing" in str(error)
        if is_safetensors_error:
            remedy = "Get an intact copy, or run: make reproduce"
            raise DamagedFile(path, str(error), remedy) from None
        raise


@contextmanager
def report_as_damage(path: Path, remedy: str = RERUN) -> Iterator[None]:
    """Raise DamagedFile if the block fails because of a missing or wrong value in a file.

    The block uses the content of a file that this program has written, such as
    `record["seeds"][0]`. A KeyError, TypeError, ValueError or similar error is taken as a sign that
    the content is damaged.

    Args:
        path: The file whose content the block uses.
        remedy: What the message tells the user to do.
    """
    try:
        yield
    except KeyError as error:
        raise DamagedFile(path, f"field {error} is missing", remedy) from None
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
        problem = str(error) or type(error).__name__
        raise DamagedFile(path, problem, remedy) from None
