"""The values of a sweep, and the start that each of them makes of the engine's own."""

from typing import Any

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.protocol.bench.sweeps import RunSweep, SweepKind
from engine_host.protocol.engine_settings.row import OFF
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import EngineKind, LaunchPlan, LaunchRequest

_DRAFTS = 3
_KV = {
    EngineKind.LLAMA_CPP: ("f16", "q8_0", "q4_0"),
    EngineKind.VLLM: ("auto", "fp8", "turboquant_k8v4", "turboquant_4bit_nc"),
}
_NGRAM = {EngineKind.LLAMA_CPP: "ngram-mod", EngineKind.VLLM: "ngram"}
"""The speculation that needs nothing of a model."""
_PATCH_PASSES = 2
PATCH_VALUES = ("off", "on")
"""The values of a patch, of which the first is what the other is judged against."""


def values_of(asked: RunSweep, plan: LaunchPlan) -> tuple[str, ...]:
    """Return the values of a sweep, the usual ones where none are named. Raises HostError(unsupported)."""
    if asked.kind is SweepKind.PATCH:
        if plan.patches is None:
            raise HostError(
                Reason.UNSUPPORTED,
                tr("{engine} has no patches: they are for vLLM.", engine=plan.engine),
                fix="Choose a preset for vLLM: `sndr presets list --engine vllm`.",
                evidence={"engine": plan.engine},
            )
        return asked.values
    if asked.kind is SweepKind.KV:
        return asked.values or _KV[EngineKind(plan.engine)]
    if _speculation(asked, plan) == OFF:
        raise HostError(
            Reason.UNSUPPORTED,
            tr("{plan} was started without speculation, so there is nothing to sweep.", plan=plan.name),
            fix=Fix(
                text=tr("Name a kind, such as {kind}.", kind=_NGRAM[EngineKind(plan.engine)]),
                command=f"sndr bench sweep speculation --speculation {_NGRAM[EngineKind(plan.engine)]}",
            ),
            evidence={"engine": plan.engine},
        )
    most = _setting(plan, "draft_tokens") if _setting(plan, "speculation") not in {None, OFF} else None
    return asked.values or tuple(map(str, range(int(most or _DRAFTS) + 1)))


def arms_of(asked: RunSweep, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the starts in their order: forth, and with more passes back, forth …"""
    passes = asked.passes or (_PATCH_PASSES if asked.kind is SweepKind.PATCH else 1)
    return tuple(
        value for turn in range(passes) for value in (values if turn % 2 == 0 else tuple(reversed(values)))
    )


def request_of(asked: RunSweep, plan: LaunchPlan, request: LaunchRequest, value: str) -> LaunchRequest:
    """Return the engine's own start with one value; the host's end is its end.

    Raises HostError(setting_invalid) for what is none.
    """
    request = request.model_copy(update={"keep": False})
    if asked.kind is SweepKind.PATCH:
        (patch,) = asked.values
        choice = request.patches
        others = {name: tuple(one for one in getattr(choice, name) if one != patch) for name in ("on", "off")}
        side = "on" if value == "on" else "off"
        only = choice.only
        if only is not None:
            only = tuple(dict.fromkeys((*only, patch))) if side == "on" else tuple(set(only) - {patch})
        update = {**others, side: (*others[side], patch), "only": only}
        return request.model_copy(update={"patches": choice.model_copy(update=update)})
    settings: dict[str, Any]
    if asked.kind is SweepKind.KV:
        llama = plan.engine == EngineKind.LLAMA_CPP.value
        names = ("kv_type_k", "kv_type_v") if llama else ("kv_cache_dtype",)
        settings = dict.fromkeys(names, value)
    elif value == "0":
        settings = {"speculation": OFF, "draft_tokens": None}
    else:
        settings = {"speculation": _speculation(asked, plan), "draft_tokens": int(value)}
    given = request.overrides.model_dump(exclude_none=True) | settings
    try:
        overrides = Overrides.model_validate({name: one for name, one in given.items() if one is not None})
    except ValidationError as error:
        raise HostError(
            Reason.SETTING_INVALID,
            tr(
                "{value} is no value of {kind}: {error}.",
                value=value,
                kind=asked.kind,
                error=error.errors()[0]["msg"],
            ),
            fix="Give another value.",
            evidence={"value": value},
        ) from error
    return request.model_copy(update={"overrides": overrides})


def wrong_patches(asked: RunSweep, plan: LaunchPlan, value: str) -> str:
    """Return why a plan has not the patches that its arm is about; empty where it has."""
    if asked.kind is not SweepKind.PATCH:
        return ""
    (patch,) = asked.values
    applied = plan.patches is not None and patch in plan.patches.chosen
    if applied == (value == "on"):
        return ""
    return f"The start would {'not ' if value == 'on' else 'still '}have the patch {patch}."


def _speculation(asked: RunSweep, plan: LaunchPlan) -> str:
    own = _setting(plan, "speculation")
    return asked.speculation or (OFF if own is None else str(own))


def _setting(plan: LaunchPlan, name: str) -> Any:
    return next((one.value for one in plan.settings if one.name == name), None)
