"""Refuses what only the tests install, as people have it: with no more than run.lock names."""

import os
import sys
from importlib.abc import MetaPathFinder


class OnlyRunPackages(MetaPathFinder):
    """Finds nothing, and says of a package of the tests that it is not installed."""

    def __init__(self, refused: frozenset[str]) -> None:
        self._refused = refused

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for what a person's environment has not."""
        if fullname in self._refused:
            raise ModuleNotFoundError(f"{fullname} is not in packaging/locks/run.lock", name=fullname)


# An engine of its own environment brings its own packages.
if sys.prefix == os.environ.get("SNDR_TEST_PREFIX"):
    sys.meta_path.insert(0, OnlyRunPackages(frozenset(os.environ["SNDR_TEST_REFUSED"].split(","))))
