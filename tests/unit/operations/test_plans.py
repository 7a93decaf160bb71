"""From a request to a frozen plan: layers, streams that fit, and plans that have become stale."""

import dataclasses
import os
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.settings import SettingsFile
from engine_host.engines.llamacpp.servers import ServerCapabilities, ServerCommand
from engine_host.launch.dependencies import PlannerDependencies
from engine_host.launch.equivalent_command import equivalent_command
from engine_host.library.index import IndexedModel
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine, EngineState, Readings
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import (
    LaunchPlan,
    LaunchRequest,
    Layer,
    ServerChoice,
    Setting,
)
from engine_host.protocol.models import ModelFile, ModelOrigin
from tests.unit.asynchronous import run
from tests.unit.launch.models import model, no_environment, no_patches, server


class Desk:
    """A planner with a model and a server on disk, and a machine of plenty of memory."""

    def __init__(self, home: Path) -> None:
        self.path = home / "m.gguf"
        self.path.write_bytes(b"weights")
        self.program = home / "llama-server"
        self.program.write_bytes(b"program")
        self.settings = SettingsFile(home / "settings.toml")
        self.free = 1 << 40
        self.running: list[Engine] = []
        self.info = model(path=self.path, parts=(self.path,))
        self.requested: list[ServerChoice] = []
        self.server: dict[str, Any] = {}
        self.planner = PlanOperations(
            PlannerDependencies(
                find_model=self._model,
                find_server=self._server,
                find_environment=no_environment,
                plan_patches=no_patches,
                settings=self.settings,
                free_memory=lambda: self.free,
                total_memory=1 << 40,
                gpus=lambda: (),
                running=lambda: self.running,
                run_folder=home / "run",
                cache_folder=home / "cache",
            )
        )

    async def _model(self, wanted: str, _formats: Collection[str]) -> IndexedModel:
        if wanted not in {"m", str(self.path)}:
            raise HostError(Reason.MODEL_FILE_MISSING, f"There is no model {wanted}.")
        file = ModelFile(
            id="m",
            name="M",
            path=str(self.path),
            origin=ModelOrigin.FOLDER,
            found_in="",
            size=self.info.size,
            format="GGUF",
        )
        return IndexedModel(file, self.info)

    async def _server(self, choice: ServerChoice) -> ServerCapabilities:
        self.requested.append(choice)
        concrete = ServerChoice.BUILT if choice is ServerChoice.AUTO else choice
        command = ServerCommand(concrete, (str(self.program),), self.program)
        return server(concrete, **({"command": command} | self.server))

    def plan(self, request: LaunchRequest | None = None, **overrides: Any) -> LaunchPlan:
        request = request or LaunchRequest(model="m", overrides=Overrides(**overrides))
        return run(self.planner.plan(request))


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def settings(plan: LaunchPlan) -> dict[str, Setting]:
    return {setting.name: setting for setting in plan.settings}


def value_after(plan: LaunchPlan, flag: str) -> str:
    return plan.argv[plan.argv.index(flag) + 1]


def test_a_plan_says_everything_that_a_start_does(desk: Desk) -> None:
    plan = desk.plan()
    assert plan.argv[0] == str(desk.program)
    assert value_after(plan, "--model") == str(desk.path)
    assert value_after(plan, "--host").endswith(f"run/{plan.id}.sock")
    assert value_after(plan, "--ctx-size") == str(4096 * 8)
    assert (plan.name, plan.streams, plan.context, plan.keep) == ("M", 8, 4096, False)
    assert plan.startable
    assert desk.planner.get(plan.id) is plan
    assert plan.command == "sndr run m"


def test_every_value_tells_its_layer(desk: Desk) -> None:
    desk.settings.change({"engine.threads": 3, "engine.keep": True, "engine.streams": 8})
    found = settings(desk.plan(context=1024, kv_type_k="q8_0"))
    layers = {name: setting.layer for name, setting in found.items()}
    assert layers["context"] is Layer.OVERRIDE
    assert layers["kv_type_k"] is Layer.OVERRIDE
    assert layers["kv_type_v"] is Layer.ENGINE
    assert layers["threads"] is Layer.USER
    assert layers["streams"] is Layer.USER, "set by the user, even to the default"
    assert layers["keep"] is Layer.USER
    assert layers["name"] is Layer.MODEL
    assert layers["server"] is Layer.HARDWARE
    assert settings(desk.plan())["context"].layer is Layer.MODEL


def test_a_context_beyond_the_models_takes_no_memory_and_is_told(desk: Desk) -> None:
    trained = desk.plan().context
    desk.settings.change({"engine.context": 32_768})
    for plan in (desk.plan(), desk.plan(context=999_999)):
        assert plan.context == trained < 32_768
        assert [finding.id for finding in plan.findings] == ["context_beyond_training"]
    assert "999,999" in plan.findings[0].message
    other = desk.plan(context=65_536, extra_arguments=("--override-kv", "llama.context_length=int:65536"))
    assert (other.context, other.findings) == (65_536, ()), "its file does not say how far it goes"


def test_the_server_of_the_request_wins_over_that_of_the_settings(desk: Desk) -> None:
    desk.plan()
    desk.settings.change({"engine.server": "prebuilt"})
    desk.plan()
    desk.plan(LaunchRequest(model="m", server=ServerChoice.OWN))
    assert desk.requested == [ServerChoice.AUTO, ServerChoice.PREBUILT, ServerChoice.OWN]


@pytest.mark.parametrize(("room", "streams"), [(8, 8), (7, 4), (3, 2), (1, 1), (0, 1)])
def test_there_are_as_many_streams_as_fit(desk: Desk, room: int, streams: int) -> None:
    one = 16 * 4 * 256 * 4096
    # The scores of a stream, and what does not depend on the streams.
    rest = 8 * 32_000 * 4 + 512 * ((3 * 4096 + 4 * 1024) * 4 + 4096 * 2) + (90 << 20)
    desk.free = int((desk.info.size + room * one + rest) / 0.8) + 8
    plan = desk.plan()
    assert plan.streams == streams
    layer = settings(plan)["streams"].layer
    assert layer is (Layer.ENGINE if streams == 8 else Layer.HARDWARE)
    assert desk.plan(streams=8).streams == 8, "who asks for more gets it, with a warning"


def test_memory_of_what_is_replaced_counts_as_free(desk: Desk) -> None:
    first = desk.plan()
    desk.free = 0
    desk.running = [
        Engine(
            id="engine-1",
            name="M",
            engine="llama.cpp",
            server=ServerChoice.BUILT,
            server_version="1",
            state=EngineState.READY,
            plan=first,
            created_at=0,
            readings=Readings(at=0, memory=1 << 40),
        )
    ]
    plan = desk.plan(context=1024)
    assert plan.streams == 8
    assert [finding.id for finding in plan.findings] == ["replaces"]
    assert plan.changes == ("context: 4096 → 1024",)
    desk.running = [desk.running[0].model_copy(update={"readings": None})]
    assert [finding.id for finding in desk.plan().findings] == ["replaces", "memory_short"]


def test_a_device_sets_no_limit_by_the_machines_memory(desk: Desk) -> None:
    desk.free, desk.server = 0, {"devices": ("CUDA0",)}
    assert desk.plan().streams == 8
    assert desk.plan().findings == ()


def test_what_the_server_cannot_do_makes_no_plan(desk: Desk) -> None:
    with pytest.raises(HostError) as raised:
        desk.plan(kv_type_k="turbo3")
    assert raised.value.reason is Reason.SETTING_INVALID


def test_a_plan_is_fresh_until_the_model_or_the_server_changes(desk: Desk) -> None:
    for path in (desk.path, desk.program):
        plan = desk.plan()
        assert run(desk.planner.fresh(plan.id)) is plan
        os.utime(path, (1, 1))
        with pytest.raises(HostError) as raised:
            run(desk.planner.fresh(plan.id))
        assert raised.value.reason is Reason.PLAN_STALE


def test_a_plan_whose_file_is_gone_is_stale(desk: Desk) -> None:
    plan = desk.plan()
    desk.path.unlink()
    with pytest.raises(HostError) as raised:
        run(desk.planner.fresh(plan.id))
    assert raised.value.reason is Reason.PLAN_STALE


def test_a_route_that_takes_the_name_of_a_start_is_said(home: Path) -> None:
    routes = {"coder": ("other", "large at api.example.com"), "M": ("M",)}
    desk = Desk(home)
    desk.planner._dependencies = dataclasses.replace(
        desk.planner._dependencies, route=lambda name: routes.get(name, ())
    )
    found = [one.id for one in desk.plan(LaunchRequest(model="m", name="coder")).findings]
    assert "route.takes_name" in found
    for name in (None, "free"):
        assert "route.takes_name" not in [
            one.id for one in desk.plan(LaunchRequest(model="m", name=name)).findings
        ]


def test_an_unknown_plan_is_named_and_only_the_newest_are_kept(desk: Desk) -> None:
    first = desk.plan()
    for _ in range(200):
        desk.plan()
    with pytest.raises(HostError) as raised:
        run(desk.planner.fresh(first.id))
    assert raised.value.reason is Reason.NOT_FOUND


def test_the_equivalent_command_is_one_line_for_a_shell() -> None:
    request = LaunchRequest(
        model="/my models/it's.gguf",
        name="a b",
        overrides=Overrides(context=1024, gpu_layers=-1, embeddings=False, extra_arguments=("--mlock",)),
        keep=True,
    )
    words = shlex.split(equivalent_command(request))
    assert words[:5] == ["sndr", "run", "/my models/it's.gguf", "--name", "a b"]
    assert "--keep" in words
    assert words[words.index("--context") + 1] == "1024"
    assert {"extra_arguments=--mlock", "gpu_layers=-1", "embeddings=false"} <= set(words)
    both = LaunchRequest(model="m", overrides=Overrides(kv_type_k="q8_0", kv_type_v="q8_0"))
    assert equivalent_command(both) == "sndr run m --kv-type q8_0"
    one = replace_overrides(both, kv_type_v="q4_0")
    assert equivalent_command(one) == "sndr run m --set kv_type_k=q8_0 --set kv_type_v=q4_0"


def replace_overrides(request: LaunchRequest, **values: Any) -> LaunchRequest:
    return request.model_copy(update={"overrides": request.overrides.model_copy(update=values)})


def test_a_context_is_what_llama_cpp_makes_of_it(desk: Desk) -> None:
    plan = desk.plan(context=300)
    assert plan.context == 512
    assert settings(plan)["context"].why == "llama.cpp rounds 300 up"
    assert desk.plan(context=512).context == 512
