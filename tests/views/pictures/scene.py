"""A FAKE host with something on every page, and always the same."""

from pathlib import Path

from engine_host.protocol.bench.alerts import Alert, AlertKind
from engine_host.protocol.endpoint.routes import RouteTargets
from engine_host.protocol.engines import EngineState, RequestState
from engine_host.protocol.remote.hosts import RemoteHost, RemoteHostState
from tests.unit.bench.lab.test_comparing import FAST, SLOW, made
from tests.views.conftest import Stage
from tests.views.fakes.real_catalog import RealCatalog
from tests.views.samples import host as samples
from tests.views.samples import routes as route_samples

MOMENT = 1_767_268_800.0  # 2026-01-01 12:00 UTC


def furnish(stage: Stage, folder: Path) -> RealCatalog:
    """Give the host an engine at work, routes, hosts, runs and alerts, before the window asks it."""
    host = stage.host
    host.engines["engine-1"] = samples.engine(EngineState.READY)
    host.requests = [
        samples.request(state, number)
        for number, state in enumerate((RequestState.DECODE, RequestState.PREFILL, RequestState.DONE), 1)
    ]
    for name, targets in (
        ("coding", RouteTargets(engines=("sndr-demo",))),
        ("writing", RouteTargets(provider=route_samples.PROVIDER)),
    ):
        host.routes[name] = route_samples.route(name, targets)
    for name, state, sentence in (
        ("gpu", RemoteHostState.DISCONNECTED, "Not connected."),
        ("lab", RemoteHostState.CONNECTING, "Connecting."),
    ):
        host.remote_hosts[name] = RemoteHost(
            name=name, destination=f"me@{name}.example", mode="agentless", state=state, sentence=sentence
        )
    host.runs = [
        made("20260102-000000-quick-bbbb", FAST, started_at=MOMENT - 3600),
        made("20260101-000000-quick-aaaa", SLOW, started_at=MOMENT - 86400),
    ]
    host.alerts = (
        Alert(
            id="a1",
            kind=AlertKind.GPU_TEMPERATURE,
            subject="GPU 0",
            at=MOMENT - 90,
            text="GPU 0 is at 95 °C (alert from 88 °C).",
        ),
    )
    # Settings shows where the window's own lie; nothing is written there.
    stage.file._path = Path("/config/window.json")
    # Words for the form of presets; the presets themselves are samples, and do not change with the catalogue.
    catalog = RealCatalog(stage, folder)
    host.real_paths = ("/v1/catalog", "/v1/fit/hub", "/v1/fit/starts")
    return catalog
