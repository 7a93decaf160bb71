"""The program as people have it: without the packages that only the tests install."""

import os
import re
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

HERE = Path(__file__).parent
RUN_LOCK = HERE.parents[1] / "packaging" / "locks" / "run.lock"


def normal(name: str) -> str:
    """Return a distribution's name as a lock spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def refused() -> tuple[str, ...]:
    """Return the top-level modules that no distribution of run.lock brings."""
    named = set(re.findall(r"^([a-z0-9.-]+)==", RUN_LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    own = {"sndr-control-center", "pip", "setuptools"}
    return tuple(
        module
        for module, brought_by in sorted(packages_distributions().items())
        if not {normal(name) for name in brought_by} & (named | own) and module.isidentifier()
    )


def variables() -> dict[str, str]:
    """Return what a program's environment needs so that it finds no package of the tests."""
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, "SNDR_TEST_PREFIX": sys.prefix, "SNDR_TEST_REFUSED": ",".join(refused())}
