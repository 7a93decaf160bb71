"""The scripts of packaging/, imported as the unit tests do it."""

from tests.unit.packaging.conftest import script

__all__ = ["script"]
