"""The gateway's FAKE engine, for what sends requests through the gateway."""

from tests.unit.gateway.conftest import scripts, world

__all__ = ["scripts", "world"]
