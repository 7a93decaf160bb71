"""Commands print what a host says, whatever it says, and nothing of it steers the terminal."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from engine_host.protocol.endpoint.connect import EndedWithHost, EndpointModelPage
from engine_host.protocol.endpoint.on_demand import OnDemandModel, OnDemandPage, OnDemandState
from engine_host.protocol.engines import EnginePage, EngineState
from engine_host.protocol.errors import Problem, Reason
from engine_host.protocol.jobs import JobKind, JobPage, JobState
from engine_host.protocol.launch.plans import LaunchRequest
from engine_host.protocol.logs import LogPage
from tests.hostile.making.models import spoiler
from tests.unit.cli.fake_host import FakeHost
from tests.views.samples import host as samples
from tests.views.samples import presets

Sndr = Callable[..., tuple[int, str, str]]
# All but the line break and the tab: what a terminal obeys, and what turns a line around.
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
COMMANDS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("status",),
        {
            "GET /v1/host": samples.host(),
            "GET /v1/engines": "engines",
            "GET /v1/endpoint/models": EndpointModelPage(
                seq=0, models=(), ended=(EndedWithHost(name="coder", command="sndr run coder"),)
            ),
        },
    ),
    (("models",), {"GET /v1/models": samples.models()}),
    (
        ("engine", "list"),
        {"GET /v1/servers": samples.servers(), "GET /v1/installations": samples.installations()},
    ),
    (("on-demand", "list"), {"GET /v1/on-demand": "on demand"}),
    (("jobs",), {"GET /v1/jobs": "jobs"}),
    (("patches", "list"), {"GET /v1/patches": samples.patches()}),
    (("presets", "list"), {"GET /v1/presets": presets.presets()}),
    (("settings", "get"), {"GET /v1/settings": samples.settings()}),
    (("logs",), {"GET /v1/logs": "logs", "GET /v1/engines": "engines"}),
)


def page(name: Any) -> BaseModel:
    """A page of something, as a host sends it."""
    if name == "engines":
        return EnginePage(seq=0, engines=(samples.engine(EngineState.READY),))
    if name == "on demand":
        return OnDemandPage(
            seq=0,
            models=(
                OnDemandModel(
                    name="small",
                    launch=LaunchRequest(model="m"),
                    command="sndr on-demand add m",
                    state=OnDemandState.LOADABLE,
                    keep_alive=60,
                    problem=Problem(reason=Reason.OUT_OF_MEMORY, message="There is no room."),
                ),
            ),
        )
    if name == "jobs":
        return JobPage(seq=0, jobs=(samples.job(JobKind.ENGINE_BUILD, JobState.FAILED),))
    if name == "logs":
        return LogPage(seq=0, lines=tuple(samples.log_lines()), sources=("host",))
    assert isinstance(name, BaseModel)
    return name


@pytest.mark.parametrize(("command", "answers"), COMMANDS, ids=[" ".join(command) for command, _ in COMMANDS])
def test_what_is_printed_steers_nothing(
    command: tuple[str, ...], answers: dict[str, Any], host: FakeHost, sndr: Sndr
) -> None:
    for turn in range(6):
        change = spoiler(turn * 11)
        for path, name in answers.items():
            host.answers[path] = (200, change(page(name)).model_dump(mode="json"))
        code, out, err = sndr(*command)
        assert code == 0, err
        assert len(out) > 20
        assert STEERS.search(out + err) is None, STEERS.search(out + err)
