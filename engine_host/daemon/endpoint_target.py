"""The target that an engine is for the endpoint: made of its plan and of what the model's files say."""

from collections.abc import Iterable
from dataclasses import replace

from engine_host.gateway.directory import UNLOADED, Target
from engine_host.launch.plans.llamacpp import CONTEXT_STEP
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.gguf import GgufInfo
from engine_host.library.index import IndexedModel
from engine_host.protocol.engines import Engine, EngineState
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan

_PROJECTORS = {"--mmproj", "-mm", "--mmproj-url", "-mmu"}
_Parts = tuple[Engine, IndexedModel | None, str, float | None]


def target_of(
    engine: Engine, model: IndexedModel | None, socket: str, expires_at: float | None = None
) -> Target:
    """An engine as the endpoint sees it; `model` is None where its files could not be read."""
    of_vllm = engine.engine == EngineKind.VLLM
    checkpoint = model.info if model and isinstance(model.info, CheckpointInfo) else None
    tokens = checkpoint.fim_tokens if checkpoint else None
    sees, hears = (checkpoint.images, checkpoint.audio) if checkpoint else (False, False)
    templated = model.info.tools if model and isinstance(model.info, GgufInfo) else of_vllm
    # A preset's plan has the catalogue's word for the model; the files have an id of their own here.
    names = (engine.plan.preset, engine.plan.model, model.file.id if model else None)
    return Target(
        engine=engine.id,
        name=engine.name,
        slots=engine.plan.streams,
        context=engine.context,
        created_at=engine.created_at,
        socket=socket,
        expires_at=expires_at,
        parameters=model.file.parameters if model else None,
        size=model.file.size if model else None,
        context_trained=model.file.context if model else None,
        architecture=model.file.architecture if model else None,
        quantization=model.file.quantization if model else None,
        embeddings=_is_on(engine, "embeddings") and not _is_on(engine, "reranking"),
        reranking=_is_on(engine, "reranking"),
        fill_in_the_middle=model.info.fim if model else None,
        fim_tokens=(tokens.prefix, tokens.suffix, tokens.middle) if tokens else None,
        fim_ids=model.info.fim_ids if model and isinstance(model.info, GgufInfo) else (),
        native_infill=not of_vllm,
        usage_on_request=of_vllm,
        # With a parser of reasoning vLLM reads all of an answer again for the count of each piece.
        tells_counts=not of_vllm or not _has_flag(engine, "--reasoning-parser"),
        # llama.cpp sees by a second file.
        images=sees if of_vllm else any(word.partition("=")[0] in _PROJECTORS for word in engine.plan.argv),
        audio=of_vllm and hears,
        tokens_only="--skip-tokenizer-init" in engine.plan.argv,
        owned_by="vllm" if of_vllm else "llamacpp",
        context_step=1 if of_vllm else CONTEXT_STEP,
        checkpoints=model is not None and _has_checkpoints(model, of_vllm),
        # vLLM keeps one at the end of each block; llama.cpp where a prompt ended.
        checkpoint_step=engine.readings.kv_block if engine.readings is not None else None,
        stands_for=tuple(dict.fromkeys(filter(None, names))),
        tools=templated and ("--tool-call-parser" if of_vllm else "--jinja") in engine.plan.argv,
    )


class KeptTargets:
    """The targets of the engines that run, each made anew only where what it is made of is another."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[_Parts, Target]] = {}

    def of(self, engines: Iterable[_Parts]) -> list[Target]:
        """Return the targets of these, and forget all others; the parts are those of `target_of`."""
        self._kept = {parts[0].id: (parts, self._target(parts)) for parts in engines}
        return [target for _, target in self._kept.values()]

    def _target(self, parts: _Parts) -> Target:
        before = self._kept.get(parts[0].id)
        return before[1] if before is not None and _same(before[0], parts) else target_of(*parts)


def _same(before: _Parts, now: _Parts) -> bool:
    """Return True for the very same values: to compare all that stands in them costs what is to be saved."""
    (engine, model, *rest), (now_engine, now_model, *now_rest) = before, now
    if engine is not now_engine or rest != now_rest:
        return False
    if model is None or now_model is None:
        return model is now_model
    return model.file is now_model.file and model.info is now_model.info


def target_of_plan(plan: LaunchPlan, model: IndexedModel | None) -> Target:
    """Return the target that a plan would start, as it is listed before: it can be reached nowhere."""
    engine = Engine(
        id=f"on-demand {plan.name}",
        name=plan.name,
        engine=plan.engine,
        server=plan.server,
        server_version=plan.server_version,
        state=EngineState.UNLOADED,
        plan=plan,
        created_at=plan.created_at,
    )
    return replace(target_of(engine, model, socket=""), state=UNLOADED)


def _has_checkpoints(model: IndexedModel, of_vllm: bool) -> bool:
    """Return True if a prompt's beginning is found again only where a state of it was kept.

    llama.cpp does the same for layers with a window, of which it forgets what lies before.
    """
    return model.info.hybrid or (not of_vllm and bool(model.info.sliding_window))


def _has_flag(engine: Engine, flag: str) -> bool:
    return any(word.partition("=")[0] == flag for word in engine.plan.argv)


def _is_on(engine: Engine, name: str) -> bool:
    """Return True if a start has a setting switched on."""
    return any(setting.name == name and setting.value for setting in engine.plan.settings)
