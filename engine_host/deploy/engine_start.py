"""Program, arguments and variables of an engine in a deployment, in the words of its adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.deploy.deployment import Root
from engine_host.deploy.images import image_of
from engine_host.deploy.llamacpp_image import image_server
from engine_host.deploy.sglang import arguments as sglang_arguments
from engine_host.deploy.spec import DeploySpec
from engine_host.engines.llamacpp.command import STRIPPED_ENVIRONMENT as LLAMA_CPP_STRIPPED
from engine_host.engines.llamacpp.command import LlamaCppStart
from engine_host.engines.llamacpp.command import serve as serve_llamacpp
from engine_host.engines.llamacpp.command import variables as llamacpp_variables
from engine_host.engines.start_variables import given_variables
from engine_host.engines.vllm.command import ENTRY, Additions, VllmStart, drafter_of
from engine_host.engines.vllm.command import STRIPPED_ENVIRONMENT as VLLM_STRIPPED
from engine_host.engines.vllm.command import serve as serve_vllm
from engine_host.protocol.catalog import PresetEngine, Task
from engine_host.protocol.launch.plans import Finding

_GIB = 2**30
# Offline is what a start of ours is; an engine that fetches its model cannot be.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_OF_SGLANG = dict.fromkeys(("PYTHONPATH", "PYTHONHOME"), "They would put other modules before SGLang's.")
_PYTHON = "python3"
_SERVER = "llama-server"


@dataclass(frozen=True, slots=True)
class EngineStart:
    """The command of an engine on a machine and in its image; shared memory in bytes."""

    program: tuple[str, ...]
    entry: tuple[str, ...]
    arguments: tuple[str, ...]
    shm: int
    environment: Mapping[str, str] = field(default_factory=dict)
    key_variable: str | None = None
    stripped: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def engine_start(spec: DeploySpec, model: str) -> EngineStart:
    """The start of an engine; `model` is what it finds the model by. Raises what its adapter raises."""
    match spec.engine:
        case PresetEngine.VLLM:
            return _vllm(spec, model)
        case PresetEngine.LLAMA_CPP:
            return _llamacpp(spec, model)
        case PresetEngine.SGLANG:
            return _sglang(spec, model)


def _vllm(spec: DeploySpec, model: str) -> EngineStart:
    build = "cuda" if spec.gpus.count else "cpu"
    additions = Additions(spec.patched.argv, spec.patched.environment) if spec.patched else Additions()
    start = VllmStart(
        model=model,
        alias=spec.alias,
        values=spec.values,
        tokenizer=spec.model.tokenizer,
        revision=spec.model.revision if spec.model.path is None else None,
    )
    argv, environment = serve_vllm(start, build, (), f"{Root.CACHE}/vllm/plain", additions)
    drafter = drafter_of(spec.text("speculation", "off"))
    fetched = drafter is not None and not Path(drafter).is_absolute()
    if spec.model.path is None or fetched:
        environment = {name: value for name, value in environment.items() if name not in _OFFLINE}
        # The models of this machine are mounted one by one, and nothing is written among them.
        environment["HF_HOME"] = Root.MODELS if spec.model.path is None else f"{Root.CACHE}/huggingface"
    entry, arguments = argv[: len(ENTRY)], argv[len(ENTRY) :]
    shared = 16 * _GIB if spec.gpus.count > 1 else 8 * _GIB
    return EngineStart(
        program=(str(spec.python or _PYTHON), *entry),
        entry=(_PYTHON, *entry),
        arguments=arguments,
        shm=shared,
        environment=environment,
        key_variable="VLLM_API_KEY",
        stripped=VLLM_STRIPPED,
    )


def _llamacpp(spec: DeploySpec, model: str) -> EngineStart:
    start = LlamaCppStart(
        model=model,
        alias=spec.alias,
        values=spec.values,
        pools_itself=Task.EMBEDDING in spec.model.tasks,
    )
    image = image_of(spec.engine, gpu=bool(spec.gpus.count))
    server = spec.server if spec.native and spec.server else image_server(image.version)
    native = spec.server.command.argv if spec.native and spec.server else (_SERVER,)
    return EngineStart(
        program=native,
        entry=image_server(image.version).command.argv,
        arguments=serve_llamacpp(start, server, ()),
        shm=1 * _GIB,
        environment=llamacpp_variables(start),
        # The server inside the prebuilt wheel reads neither that argument nor its variable.
        key_variable="LLAMA_API_KEY" if "--api-key" in server.flags else None,
        stripped=LLAMA_CPP_STRIPPED,
    )


def _sglang(spec: DeploySpec, model: str) -> EngineStart:
    arguments, findings = sglang_arguments(spec, model)
    entry = ("-m", "sglang.launch_server")
    environment = {"PYTHONUNBUFFERED": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment |= given_variables(spec.values.get("variables") or (), environment, _OF_SGLANG)
    if spec.model.path is None:
        environment["HF_HOME"] = Root.MODELS
    return EngineStart(
        program=(_PYTHON, *entry),
        entry=(_PYTHON, *entry),
        arguments=arguments,
        shm=32 * _GIB,
        environment=environment,
        stripped=("SGLANG_", "PYTHONPATH", "PYTHONHOME"),
        findings=findings,
    )
