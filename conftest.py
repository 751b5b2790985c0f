"""The environment and the pytest plugins of all tests, including those of tools/."""

import atexit
import gc
import os

from hypothesis import settings

from root import ROOT

pytest_plugins = ["required_tests", "not_run", "process_tests"]

# Before torch is loaded: threads that wait leave the cores to the processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# What `make test` sets for the commands that it starts would change what make prints in a test.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)

# Processes that tests start run the code of this checkout, also by the .venv of another one.
paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))

# A test that is right on a fast machine is right on a slow or busy one.
settings.register_profile("without-clock", deadline=None)
settings.load_profile("without-clock")

# A process that ends looks through all objects for garbage; after thousands of tests that takes
# five seconds.
atexit.register(gc.freeze)
