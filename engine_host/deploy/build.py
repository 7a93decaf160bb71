"""Builds the deployment of a spec: the place of the model, the check, and what a person has to know."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.deploy.deployment import (
    INSIDE,
    Check,
    Deployment,
    Download,
    Mount,
    Root,
    Secret,
    hub_address,
    name_of,
    refuse_control_characters,
)
from engine_host.deploy.engine_start import EngineStart, engine_start
from engine_host.deploy.images import image_of
from engine_host.deploy.spec import DeploySpec, ModelSource
from engine_host.engines.vllm.command import drafter_of, with_drafter
from engine_host.protocol.catalog import PresetEngine, Task
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding

# Of the slowest start that is no failure: weights at 20 MB/s over the network, 300 MB/s from the disk, and
# ten minutes for compiling and CUDA graphs. A model of unknown size gets an hour.
_NETWORK, _DISK, _COMPILING, _UNKNOWN = 20e6, 300e6, 600, 3600
# How fast the slowest prompt is read, in tokens a second: a request that waits for one is no hang.
_SLOWEST_PREFILL = 300
WATCHDOG_SECONDS = 120
GPUS_BY_NUMBER = "render.gpus-by-number"
# Several tokens: vLLM 0.32 on the processor ends with a hybrid model at a prompt of a single one.
_QUESTION = "Once upon a time there was"
_LEAST_PATIENCE, _MOST_PATIENCE = 3, 15
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def deployment_of(spec: DeploySpec) -> Deployment:
    """The deployment of a start.

    Raises what the engine's adapter raises, HostError(not_found) for a model that is nowhere,
    HostError(setting_invalid) for values with control characters.
    """
    source = spec.model
    mounts: tuple[Mount, ...] = ()
    inside = ""
    if source.path is not None and not spec.native:
        mounts, inside = source.mounts, source.inside
        if not mounts:
            mounts, inside = mounts_of(source.path, source.parts)
    spec, more = _with_drafter(spec)
    mounts += more
    start = engine_start(spec, _model(spec, inside))
    image = image_of(spec.engine, gpu=bool(spec.gpus.count), version=spec.version)
    downloads = () if source.path is not None else tuple(_downloads(source))
    by_engine = source.path is None and not downloads
    deployment = Deployment(
        name=name_of(spec.id),
        title=spec.title,
        alias=spec.alias,
        engine=spec.engine,
        version=spec.server.label if spec.native and spec.server else image.version,
        program=start.program,
        image=image.address,
        entry=start.entry,
        arguments=start.arguments,
        environment=start.environment,
        secrets=tuple(_secrets(start)),
        gpus=spec.gpus,
        shm=start.shm,
        start_seconds=_start_seconds(source),
        patience=_patience(spec),
        check=_check(spec),
        model=_described(source),
        stripped=start.stripped,
        here=spec.native and (spec.python or spec.server) is not None,
        fetched_by_engine=by_engine,
        downloads=downloads,
        again=downloads,
        local=source.path is not None,
        mounts=mounts,
        model_size=source.size,
        overlay=spec.patched.overlay if spec.patched else None,
        port=spec.port,
        address=spec.address,
        findings=(*spec.findings, *start.findings, *_findings(spec, start, image.address)),
    )
    refuse_control_characters(deployment)
    return deployment


def mounts_of(path: Path, parts: Sequence[Path] = ()) -> tuple[tuple[Mount, ...], str]:
    """Return the mounts of a model for a container, and the model's place below its folder of models.

    A file's links are followed, so that a hub's cache can be mounted; of a folder whose files are links the
    folder that holds all of them is mounted. Raises HostError(unsupported) when they have nothing in common.
    """
    if not path.is_dir():
        files = parts or (path,)
        return tuple(Mount(one.resolve(), one.name) for one in files), path.name
    folder = path.resolve()
    reached = [folder, *(one.resolve() for one in sorted(folder.rglob("*")) if one.is_file())]
    root = Path(os.path.commonpath([str(one if one == folder else one.parent) for one in reached]))
    if len(root.parts) < 3 and root != folder:
        raise HostError(
            Reason.UNSUPPORTED,
            tr(
                "{path} cannot be mounted: its files are links to places that have nothing in common.",
                path=path,
            ),
            cause="One folder with all of them in it would be the root of the disk, or close to it.",
            fix="Give a folder that holds the files themselves.",
            evidence={"path": str(path), "together": str(root)},
        )
    return (Mount(root, root.name),), folder.relative_to(root.parent).as_posix()


def _with_drafter(spec: DeploySpec) -> tuple[DeploySpec, tuple[Mount, ...]]:
    """The same with a drafter of this machine where a container finds it, and what is mounted for that."""
    speculation = spec.text("speculation", "off")
    drafter = drafter_of(speculation) if spec.engine is PresetEngine.VLLM else None
    if spec.native or drafter is None or not Path(drafter).is_absolute():
        return spec, ()
    mounts, inside = mounts_of(Path(drafter))
    # No mark can stand in JSON; where it is in a container is the same everywhere.
    found = with_drafter(speculation, Path(INSIDE[Root.MODELS]) / inside)
    return replace(spec, values={**spec.values, "speculation": found}), mounts


def _model(spec: DeploySpec, inside: str) -> str:
    source = spec.model
    if source.path is not None:
        return str(source.path.absolute()) if spec.native else f"{Root.MODELS}/{inside}"
    weights = [file.name for file in source.files if file.role == "weights"]
    if weights:
        return f"{Root.MODELS}/{weights[0]}"
    if source.repository is None or spec.engine is PresetEngine.LLAMA_CPP:
        raise HostError(
            Reason.NOT_FOUND,
            tr("It is not known where {source} can be fetched.", source=source.title),
            cause="Its entry in the catalogue names no file.",
            fix="Give the path of its file with --model.",
            evidence={"model": source.title, "repository": source.repository},
        )
    return source.repository


def _downloads(source: ModelSource) -> Iterator[Download]:
    for file in source.files:
        if source.repository is not None and file.role == "weights":
            revision = source.revision or "main"
            address = hub_address(source.repository, revision, file.name)
            yield Download(address, file.name, file.size, file.sha256)


def _secrets(start: EngineStart) -> Iterator[Secret]:
    yield Secret("HF_TOKEN", "token of Hugging Face, for models that are given to known people only")
    if start.key_variable:
        yield Secret(start.key_variable, "key that every request has to bring")


def _check(spec: DeploySpec) -> Check:
    tasks = spec.model.tasks
    model = spec.alias
    if spec.values.get("reranking"):
        return Check("/v1/rerank", {"model": model, "query": _QUESTION, "documents": [_QUESTION]})
    if spec.values.get("embeddings"):
        return Check("/v1/embeddings", {"model": model, "input": _QUESTION})
    if Task.RERANK in tasks:
        return Check("/v1/rerank", {"model": model, "query": _QUESTION, "documents": [_QUESTION]})
    return Check("/v1/completions", {"model": model, "prompt": _QUESTION, "max_tokens": 1, "temperature": 0})


def _start_seconds(source: ModelSource) -> int:
    if source.size is None:
        return _UNKNOWN
    if source.path is not None:
        return _COMPILING + math.ceil(source.size / _DISK)
    return _COMPILING + math.ceil(source.size / _NETWORK / 60) * 60


def _patience(spec: DeploySpec) -> int:
    """Return how many checks in a row may fail: as many as the longest prompt takes, and three."""
    reading = spec.number("context", SETTINGS["context"].default) / _SLOWEST_PREFILL
    return min(_LEAST_PATIENCE + math.floor(reading / WATCHDOG_SECONDS), _MOST_PATIENCE)


def _described(source: ModelSource) -> str:
    if source.path is not None:
        return str(source.path)
    return f"{source.repository}@{source.revision}" if source.revision else str(source.repository)


def _findings(spec: DeploySpec, start: EngineStart, image: str) -> Iterator[Finding]:
    source = spec.model
    if not spec.native:
        yield finding("render.image-not-tried", image=image)
    if source.path is None and source.revision is None:
        yield finding("render.revision-open", repository=source.repository)
    unknown = [one.file for one in _downloads(source) if one.sha256 is None] if source.path is None else []
    if unknown:
        yield finding("render.download-not-checked", files=unknown)
    if spec.gpus.count and not spec.gpus.uuids:
        yield finding(GPUS_BY_NUMBER, evidence={"count": spec.gpus.count}, gpus=_gpus(spec.gpus.count))
    if spec.address not in _LOOPBACK:
        yield finding(
            "render.open-to-network" if start.key_variable else "render.open-to-network/proxy",
            address=spec.address,
            variable=start.key_variable,
        )
    if start.key_variable is None:
        yield finding("render.no-key", why=_no_key(spec))


def _no_key(spec: DeploySpec) -> str:
    if spec.engine is PresetEngine.SGLANG:
        return "SGLang takes one on its command line alone, where everybody on the machine reads it"
    return "this build of llama.cpp's server takes none from its environment"


def _gpus(count: int) -> str:
    return "One GPU is" if count == 1 else f"{count} GPUs are"
