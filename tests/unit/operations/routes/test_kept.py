"""Setting a route: what would break it is refused before anything changes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.routes.kept import RouteOperations
from engine_host.protocol.endpoint.routes import Provider, SetRoute
from engine_host.protocol.errors import Reason
from engine_host.protocol.models import ModelFile


class NoPresets:
    """A FAKE catalogue, empty."""

    presets: Mapping[str, object] = MappingProxyType({})
    variations = presets

    async def catalog(self) -> "NoPresets":
        """Return itself."""
        return self


async def no_models(_again: bool) -> Sequence[ModelFile]:
    return ()


def with_operations(world: Any, work: Callable[[RouteOperations, Any], Any]) -> None:
    """Run a test with operations over the FAKE engine `m`."""

    async def go() -> None:
        async with world() as served:
            presets = cast("PresetOperations", NoPresets())
            events = EventLog()
            await work(
                RouteOperations(
                    served.routes,
                    served,
                    events,
                    presets,
                    no_models,
                    lambda _: False,
                    served.gateway.providers.of,
                ),
                served,
            )

    asyncio.run(go())


def test_a_working_route_is_not_led_to_nobody(world: Any) -> None:
    async def work(operations: RouteOperations, served: Any) -> None:
        await operations.put("coder", SetRoute(engines=("m",)))
        before = served.routes.get("coder")
        with pytest.raises(HostError) as refused:
            await operations.put("coder", SetRoute(engines=("nosuch",)))
        assert refused.value.reason is Reason.NOT_FOUND
        assert served.routes.get("coder") == before
        status = await operations.put("coder", SetRoute(engines=("nosuch",), anyway=True))
        assert [one.id for one in status.findings] == ["route.target_unknown"]
        # It led there already: that is no new mistake.
        await operations.put("coder", SetRoute(engines=("nosuch", "m")))

    with_operations(world, work)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_the_file_of_a_key_is_looked_at_when_it_is_set(world: Any, tmp_path: Path, mode: int) -> None:
    key = tmp_path / "key"
    key.write_text("sk-0123456789")
    key.chmod(mode)
    provider = Provider(url="https://api.example/v1", model="m", context=4096, key_file=str(key))

    async def work(operations: RouteOperations, served: Any) -> None:
        with pytest.raises(HostError) as refused:
            await operations.put("out", SetRoute(provider=provider, anyway=True))
        assert refused.value.reason is Reason.SETTING_INVALID
        assert "chmod 600" in refused.value.problem.sentence()
        assert not served.routes.saved
        key.chmod(0o600)
        await operations.put("out", SetRoute(provider=provider))
        # What is wrong later is said where the key is needed, and keeps nobody from closing the route.
        key.chmod(mode)
        await operations.put("out", SetRoute(provider=provider, allow_remote=False))

    with_operations(world, work)


@pytest.mark.parametrize("name", ["/etc/passwd", "/nowhere/at/all", "key", "../key", "/dev/null", "/\0"])
def test_what_is_no_key_is_refused(world: Any, name: str) -> None:
    async def work(operations: RouteOperations, _served: Any) -> None:
        provider = Provider.model_construct(
            url="https://api.example/v1", model="m", context=4096, key_variable=None, key_file=name
        )
        with pytest.raises(HostError) as refused:
            await operations.put("out", SetRoute.model_construct(engines=(), provider=provider, anyway=False))
        assert refused.value.reason is Reason.SETTING_INVALID

    with_operations(world, work)
