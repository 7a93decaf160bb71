"""The server that this program builds, as the tests of engines have it."""

from tests.integration.engines.conftest import built_folder

__all__ = ["built_folder"]
