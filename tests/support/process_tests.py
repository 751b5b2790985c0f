"""A plugin of pytest: the mark `processes`, of tests that start processes, which take longest.

`make test-fast` leaves them out. A test has the mark if it is in a folder of tests of the whole
program, if its module imports what starts processes, or if it uses a fixture that starts processes.
An import inside a function is not seen.
"""

import functools
import sys
from pathlib import Path
from types import ModuleType

# Modules and packages: a class imported from `multiprocessing` is of `multiprocessing.context`.
_STARTERS = {"subprocess", "multiprocessing"}
_FOLDERS = {"faults", "integration"}
# Fixtures that give their tests the mark, also by way of another fixture. `shared_folder` makes
# the folders that tests share because they take long to make.
_FIXTURES = {"shared_folder", "browser", "mlserver", "cluster", "two_hosts"}
_SUPPORT = Path(__file__).parent


def pytest_itemcollected(item):
    """Mark a test that starts processes; pytest calls this function for each test."""
    is_of_whole_program = item.path.parent.name in _FOLDERS
    uses_processes = starts_processes(item.module) or not _FIXTURES.isdisjoint(item.fixturenames)
    if is_of_whole_program or uses_processes:
        item.add_marker("processes")


@functools.cache
def starts_processes(module):
    """Return whether a module of tests, or one of tests/support that it uses, starts processes."""
    for name in _modules_used_by(module):
        package, _, _ = name.partition(".")
        if package in _STARTERS:
            return True
        used_module = sys.modules[name]
        path = getattr(used_module, "__file__", None)
        is_support = path is not None and Path(path).parent == _SUPPORT
        if is_support and used_module is not module and starts_processes(used_module):
            return True
    return False


def _modules_used_by(module):
    """Return the names of the modules that a module has imported, or has imported from."""
    names = set()
    for value in vars(module).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if name in sys.modules:
            names.add(name)
    return names
