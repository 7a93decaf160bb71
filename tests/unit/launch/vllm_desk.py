"""A planner for vLLM over a checkpoint and a record on disk, and what tests read off its plans."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.errors import HostError
from engine_host.core.settings import SettingsFile
from engine_host.engines.llamacpp.servers import ServerCapabilities, ServerCommand
from engine_host.launch.dependencies import PatchFacts, PlannerDependencies, PlanPatches
from engine_host.library.checkpoint import CheckpointInfo, read_checkpoint
from engine_host.library.index import IndexedModel
from engine_host.operations.plans import PlanOperations
from engine_host.protocol.bench.proofs import Proof
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.engines import Engine
from engine_host.protocol.errors import Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.launch.plans import (
    Finding,
    LaunchPlan,
    LaunchRequest,
    ServerChoice,
    Setting,
)
from engine_host.protocol.models import ModelFile, ModelOrigin
from engine_host.protocol.patches import PatchChoice, PlannedPatches
from tests.unit.asynchronous import run
from tests.unit.launch.models import model, server
from tests.unit.library.checkpoints import checkpoint, tensors

GIB = 1 << 30
HYBRID = {
    "num_hidden_layers": 4,
    "full_attention_interval": 4,
    "mtp_num_hidden_layers": 1,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "model_type": "qwen3_5_text",
    "architectures": ["Qwen3_5ForCausalLM"],
}


@dataclass(frozen=True)
class Venv:
    """An environment of vLLM of which only the record is on disk."""

    record: Path
    id: str = "0.32.0-cpu"
    version: str = "0.32.0"
    build: str = "cpu"
    label: str = "vLLM 0.32.0, CPU"
    python: Path = Path("/opt/vllm/bin/python")
    site_packages: Path = Path("/opt/vllm/lib")


def gpu(index: int, used: int = 0, total: int = 140 * GIB) -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        name="H200",
        memory_total=total,
        memory_used=used,
        compute_capability="9.0",
    )


class Desk:
    """A planner with a checkpoint and a record of vLLM on disk; nothing is started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = checkpoint(home / "m", tensors(a=(8,), mtp__b=(2,)), **HYBRID)
        (self.folder / "tokenizer.json").write_text("{}")
        self.file = home / "x.gguf"
        self.file.write_bytes(b"weights")
        self.template = "<tool_call>\n<function=x>"
        self.settings = SettingsFile(home / "settings.toml")
        record = home / "installation.json"
        record.write_text("{}")
        self.venv = Venv(record)
        self.free = 64 * GIB
        self.total = 128 * GIB
        self.gpus: tuple[Gpu, ...] = ()
        self.running: list[Engine] = []
        self.facts: list[PatchFacts] = []
        self.proof: Proof | None = None
        self.patches = PlannedPatches(digest="d1", chosen=("a", "b"))
        self.planner = PlanOperations(
            PlannerDependencies(
                find_model=self._model,
                find_server=self._server,
                find_environment=self._environment,
                plan_patches=self._patches,
                settings=self.settings,
                free_memory=lambda: self.free,
                total_memory=self.total,
                gpus=lambda: self.gpus,
                running=lambda: self.running,
                run_folder=home / "run",
                cache_folder=home / "cache",
                proof=lambda _asked: self.proof,
            )
        )

    def info(self) -> CheckpointInfo:
        (self.folder / "chat_template.jinja").write_text(self.template)
        return read_checkpoint(self.folder)

    async def _model(self, wanted: str, _formats: Collection[str]) -> IndexedModel:
        if wanted == "gguf":
            return IndexedModel(self._file("gguf", "GGUF"), model(path=self.file, parts=(self.file,)))
        info = self.info()
        return IndexedModel(self._file("m", info.format), info)

    def _file(self, name: str, form: str) -> ModelFile:
        return ModelFile(
            id=name,
            name=name,
            path=str(self.folder),
            origin=ModelOrigin.FOLDER,
            found_in="",
            size=1,
            format=form,
        )

    async def _server(self, choice: ServerChoice) -> ServerCapabilities:
        command = ServerCommand(ServerChoice.BUILT, (str(self.file),), self.file)
        return server(choice, command=command)

    async def _environment(self, wanted: str | None) -> Venv:
        if wanted not in {None, self.venv.id}:
            raise HostError(Reason.NOT_FOUND, f"There is no {wanted}.")
        return self.venv

    def _patches(self, facts: PatchFacts, choice: PatchChoice) -> PlanPatches:
        self.facts.append(facts)
        chosen = tuple(name for name in self.patches.chosen if name not in choice.off)
        planned = self.patches.model_copy(update={"chosen": chosen})
        return PlanPatches(planned, {"SNDR_OVERLAY": "/bundle"}, ("--additional-config", "{}"))

    def plan(self, wanted: str = "m", *, patches: PatchChoice | None = None, **overrides: Any) -> LaunchPlan:
        requested = LaunchRequest(
            model=wanted, overrides=Overrides(**overrides), patches=patches or PatchChoice()
        )
        return self.make(requested)

    def make(self, request: LaunchRequest) -> LaunchPlan:
        return run(self.planner.plan(request))

    def refused(self, request: LaunchRequest) -> HostError:
        with pytest.raises(HostError) as raised:
            self.make(request)
        return raised.value

    def cuda(self, *gpus: Gpu) -> None:
        self.venv = replace(self.venv, id="0.32.0-cuda", build="cuda", label="vLLM 0.32.0, CUDA")
        self.gpus = gpus


def settings(plan: LaunchPlan) -> dict[str, Setting]:
    return {setting.name: setting for setting in plan.settings}


def after(plan: LaunchPlan, flag: str) -> str:
    return plan.argv[plan.argv.index(flag) + 1]


def finding(plan: LaunchPlan, name: str) -> Finding:
    return next(one for one in plan.findings if one.id == name)
