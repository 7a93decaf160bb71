"""Models are built when they are first used: here all wire types are."""

import importlib
import pkgutil

import pytest
from pydantic import BaseModel

import engine_host.protocol
from engine_host.protocol.base import Command, Query, Wire


def _below(kind: type[BaseModel]) -> set[type[BaseModel]]:
    return {kind}.union(*(_below(one) for one in kind.__subclasses__()))


@pytest.mark.parametrize("base", [Wire, Command, Query])
def test_each_can_be_built(base: type[BaseModel]) -> None:
    for module in pkgutil.walk_packages(engine_host.protocol.__path__, "engine_host.protocol."):
        importlib.import_module(module.name)
    ours = [one for one in _below(base) if one.__module__.startswith(("engine_host.", "sndr_gui."))]
    assert [one.__name__ for one in ours if one.model_rebuild() is False] == []
    assert len(ours) > 5


def test_no_model_of_the_host_is_built_where_it_is_defined() -> None:
    importlib.import_module("engine_host.daemon.main")
    ours = [one for one in _below(BaseModel) if one.__module__.startswith("engine_host.")]
    assert [one.__qualname__ for one in ours if not one.model_config.get("defer_build")] == []
