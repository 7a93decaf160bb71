"""A preset's start as the calculator's question, and its verdict on one machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.fit.estimate import blocker, estimate, largest_context
from engine_host.fit.report import start_of
from engine_host.fit.roofline import expected, roofline
from engine_host.fit.start import Device, Model, Start
from engine_host.protocol.allowed import refusal
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import Evidence, PresetEngine, PresetStatus, Task
from engine_host.protocol.engine_settings.questions import drafts_itself, question_of, settings_asked
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import Correction, FitReport, FitRequest, Roofline, Verdict
from engine_host.protocol.launch.plans import EngineKind, Finding, Layer
from engine_host.protocol.presets import PresetVerdict, ResolvedPreset

ENGINES = {PresetEngine.LLAMA_CPP: EngineKind.LLAMA_CPP, PresetEngine.VLLM: EngineKind.VLLM}
# It answers with vectors or a score, and writes no tokens.
_WITHOUT_TOKENS = {Task.EMBEDDING, Task.RERANK}
_VERDICTS = (Verdict.FITS, Verdict.TIGHT, Verdict.UNKNOWN, Verdict.DOES_NOT_FIT, Verdict.CANNOT_RUN)
_TRUST = tuple(PresetStatus)
_NOT_FIRST = {PresetStatus.UPSTREAM_GATED, PresetStatus.DEPRECATED}


def overrides_of(asked: FitRequest, engine: PresetEngine, speculation: str | None) -> Overrides:
    """The settings that a question sets over those of its preset; `speculation` is what the preset says.

    Raises HostError(bad_request) for a value that no start can have.
    """
    asks = {name: getattr(asked, name) for name in asked.model_fields_set}
    if asks.get("speculation") is drafts_itself(speculation or ""):
        # As the preset has it, in its own words.
        del asks["speculation"]
    given = settings_asked(engine, asks)
    try:
        return Overrides.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise HostError(
            Reason.BAD_REQUEST,
            tr(
                "A preset cannot start with {first} = {first2}: {refusal}.",
                first=first["loc"][0],
                first2=first["input"],
                refusal=refusal(first, Overrides),
            ),
            fix="Give another value.",
            evidence={"field": str(first["loc"][0])},
        ) from error


def question(resolved: ResolvedPreset, asked: FitRequest) -> FitRequest:
    """The question of a preset's start, with whatever is set in what was asked."""
    values = {setting.name: setting.value for setting in resolved.settings}
    sampling = resolved.model.sampling
    known: dict[str, Any] = {
        "engine": ENGINES.get(resolved.engine, EngineKind.VLLM),
        "cpu": resolved.preset.needs.gpus == 0,
        **({"min_p": sampling.min_p} if sampling and sampling.min_p is not None else {}),
        **question_of(resolved.engine, values),
    }
    set_here = {name: getattr(asked, name) for name in asked.model_fields_set - {"engine"}}
    return FitRequest.model_validate(known | set_here)


def other_engine(preset: str, engine: PresetEngine, asked: EngineKind) -> HostError:
    """setting_invalid: a preset was asked for with another engine than its own."""
    return HostError(
        Reason.SETTING_INVALID,
        tr(
            "{preset} is for {names}, not for {asked}.",
            preset=preset,
            names=_NAMES[engine],
            asked=asked.value,
        ),
        cause="Its settings mean something to that engine alone.",
        fix=Fix(
            text="Leave the engine out, or choose a preset for it.",
            command=f"sndr presets list --engine {asked.value}",
        ),
        evidence={"preset": preset, "engine": engine.value},
    )


def refuse_other_engine(resolved: ResolvedPreset, asked: FitRequest, model: Model | None = None) -> None:
    """Raise HostError where a question is about another engine than its preset's, or `model` needs one.

    setting_invalid for an engine that was asked for, unsupported for a model that was.
    """
    kind, preset = ENGINES[resolved.engine], resolved.preset.id
    if asked.engine not in {EngineKind.AUTO, kind}:
        raise other_engine(preset, resolved.engine, asked.engine)
    if model is None or (kind is EngineKind.LLAMA_CPP) is (model.format == "GGUF"):
        return
    other = PresetEngine.VLLM if kind is EngineKind.LLAMA_CPP else PresetEngine.LLAMA_CPP
    raise HostError(
        Reason.UNSUPPORTED,
        tr(
            "{preset} starts {names}, which does not read {model}; {names2} does.",
            preset=preset,
            names=_NAMES[resolved.engine],
            model=model.name,
            names2=_NAMES[other],
        ),
        cause=tr(
            "{names} reads GGUF files alone, and vLLM everything but those.",
            names=_NAMES[PresetEngine.LLAMA_CPP],
        ),
        fix=Fix(
            text=tr(
                "Take a preset for {names}, another file of the model, or no preset.", names=_NAMES[other]
            ),
            command=f"sndr presets list --engine {other.value}",
        ),
        evidence={"preset": preset, "engine": kind.value, "model": model.name},
    )


def judged(report: FitReport, resolved: ResolvedPreset) -> FitReport:
    """A preset's report with what its layers and the hardware say beside the arithmetic."""
    verdict, reason, why = _ruled(resolved, report.verdict, report.reason, report.why)
    # No change of the start mends what rules it out.
    kept = {} if verdict is not Verdict.CANNOT_RUN else {"changes": ()}
    return report.model_copy(update={"verdict": verdict, "reason": reason, "why": why, **kept})


def verdict_of(
    resolved: ResolvedPreset,
    model: Model | HostError,
    devices: Sequence[Device],
    learnt: Callable[[Start, Model], Sequence[Correction]] = lambda _start, _model: (),
) -> PresetVerdict:
    """Judge whether a preset would work on these devices, and how well at most; what is not known is said so.

    `learnt` tells the corrections that starts like it on such a device taught.
    """
    known = PresetVerdict(preset=resolved.preset.id, verdict=Verdict.UNKNOWN, measured=_measured(resolved))
    if resolved.engine not in ENGINES or isinstance(model, HostError):
        reason = model.reason if isinstance(model, HostError) else None
        why = f"Whether it fits is not known: {model.problem.message}" if isinstance(model, HostError) else ""
        verdict, reason, why = _ruled(resolved, Verdict.UNKNOWN, reason, why)
        return known.model_copy(update={"verdict": verdict, "reason": reason, "why": why})
    request = question(resolved, FitRequest())
    start = start_of(request, model, devices, cpu=request.cpu)
    factors = {one.part: one.factor for one in learnt(start, model)}
    try:
        if (stopped := blocker(model, start)) is not None:
            verdict, reason, why = _ruled(resolved, Verdict.CANNOT_RUN, stopped.reason, stopped.why)
            return known.model_copy(update={"verdict": verdict, "reason": reason, "why": why})
        found = estimate(model, start, factors)
        longest = largest_context(model, start, factors)
        writes = not _WITHOUT_TOKENS.issuperset(resolved.model.tasks)
        ceiling = roofline(model, start) if writes else None
    except HostError as error:  # A KV type whose size is not known.
        verdict, reason, why = _ruled(
            resolved, Verdict.UNKNOWN, error.reason, f"Whether it fits is not known: {error.problem.message}"
        )
        return known.model_copy(update={"verdict": verdict, "reason": reason, "why": why})
    arithmetic, reason, why = found.verdict, None, found.why
    if arithmetic is Verdict.DOES_NOT_FIT and _ran_on(resolved) and not _fits_empty(model, start, factors):
        arithmetic, why = Verdict.TIGHT, f"It is reported to run on such GPUs; by the arithmetic {why}"
    elif arithmetic is Verdict.DOES_NOT_FIT:
        reason = Reason.OUT_OF_MEMORY
    verdict, reason, why = _ruled(resolved, arithmetic, reason, why)
    return known.model_copy(
        update={
            "verdict": verdict,
            "reason": reason,
            "why": why,
            "needed": found.needed,
            "room": found.budget,
            "largest_context": longest,
            "streams": start.streams,
            **({} if ceiling is None else _speeds(ceiling, known.measured)),
        }
    )


def _speeds(found: Roofline, measured: Evidence | None) -> dict[str, float | str | None]:
    """Return the ceilings, and how what was measured can be above one of them."""
    length = found.tokens_per_step
    undrafted = found.decode / length if found.decode and length > 1 else None
    return {
        "decode": found.decode,
        "decode_at_depth": found.decode_at_depth,
        "decode_all_streams": found.decode_all_streams,
        "decode_undrafted": undrafted,
        "measured_why": why_above(found.decode, undrafted, None if measured is None else measured.value),
    }


def why_above(ceiling: float | None, undrafted: float | None, measured: float | None) -> str:
    """Say how a rate can be above the ceiling of a step without accepted drafts, or above any; or nothing."""
    if ceiling is None or measured is None:
        return ""
    if measured > ceiling:
        return tr(
            "The measured rate is above the limit of {ceiling:,.1f} tok/s: another version, other weights or "
            "a faster GPU were measured.",
            ceiling=ceiling,
        )
    if undrafted is None or measured <= undrafted:
        return ""
    return tr(
        "The measured rate is above the limit without draft tokens, because drafts were accepted: at least "
        "{length:.2f} tokens a step, of at most {most:.0f}.",
        length=measured / undrafted,
        most=ceiling / undrafted,
    )


def _measured(resolved: ResolvedPreset) -> Evidence | None:
    """Return what one stream gave on this very hardware with the preset as it is; our own figure first."""
    if _changed(resolved):
        return None
    here = (resolved.hardware, resolved.count, 1)
    found = [
        one
        for one in resolved.preset.card.evidence
        if one.hardware is not None and (one.hardware, one.count, one.streams) == here
    ]
    return min(found, key=lambda one: one.by != "us", default=None)


def lacking(resolved: ResolvedPreset) -> tuple[Finding, ...]:
    """Return what the hardware or this program has not, and the preset needs."""
    found = [finding for finding in resolved.findings if finding.severity is Severity.ERROR]
    if resolved.engine not in ENGINES:
        found.append(not_started(resolved))
    return tuple(found)


def not_started(resolved: ResolvedPreset) -> Finding:
    """That this program has no adapter for the preset's engine."""
    return finding(
        "engine.not_started",
        name=_NAMES[resolved.engine],
        preset=resolved.preset.id,
        engine=resolved.engine.value,
    )


_NAMES = {PresetEngine.LLAMA_CPP: "llama.cpp", PresetEngine.VLLM: "vLLM", PresetEngine.SGLANG: "SGLang"}


def rank(found: PresetVerdict, resolved: ResolvedPreset) -> tuple[Any, ...]:
    """Sorts verdicts, what will work best first.

    By verdict, by trust in it on this very hardware, then by what makes the most of the machine: presets for
    GPUs before those for the processor, the larger model first, the faster one of two. On a processor
    llama.cpp comes first: on the same model it is up in a second, takes a tenth of the memory and decodes
    several times as fast (the cards of the two demos).
    """
    preset, variant = resolved.preset, resolved.model.variant(resolved.preset.variant)
    status, asked = preset.card.status, question(resolved, FitRequest())
    return (
        _VERDICTS.index(found.verdict),
        status in _NOT_FIRST,
        bool(resolved.count) and not preset.needs.gpus,
        resolved.hardware not in preset.needs.known_good,
        _TRUST.index(status),
        not preset.needs.gpus and resolved.engine is not PresetEngine.LLAMA_CPP,
        -((variant.size if variant else None) or 0),
        -expected(found.decode or 0, asked.draft_tokens if asked.speculation else 0),
        preset.id,
    )


def _fits_empty(model: Model, start: Start, factors: Mapping[str, float]) -> bool:
    """Tell whether it is only what others hold that is in the way."""
    empty = tuple(replace(device, taken=0) for device in start.devices)
    return estimate(model, replace(start, devices=empty), factors).verdict is not Verdict.DOES_NOT_FIT


def _ran_on(resolved: ResolvedPreset) -> bool:
    """Tell whether somebody measured the preset as it is on this hardware."""
    preset = resolved.preset
    known = resolved.hardware in preset.needs.known_good and (resolved.count or 0) >= preset.needs.gpus
    return known and bool(preset.card.evidence) and not _changed(resolved)


def _changed(resolved: ResolvedPreset) -> bool:
    """Tell whether somebody set something over the preset."""
    return any(setting.by.layer in {Layer.USER, Layer.OVERRIDE} for setting in resolved.settings)


def _ruled(
    resolved: ResolvedPreset, verdict: Verdict, reason: Reason | None, why: str
) -> tuple[Verdict, Reason | None, str]:
    """The arithmetic's verdict beside what the layers say: what is lacking wins."""
    lacks = lacking(resolved)
    # Of memory the arithmetic knows more than the card does.
    hard = next((finding for finding in lacks if finding.id != "preset.vram"), None)
    if hard is not None:
        return Verdict.CANNOT_RUN, hard.reason, hard.message
    if resolved.conflicts:
        return Verdict.CANNOT_RUN, Reason.PRESET_CONFLICT, f"{resolved.conflicts[0].message}."
    soft = next(iter(lacks), None)
    if soft is not None and verdict is Verdict.FITS:
        return Verdict.TIGHT, soft.reason, f"{soft.message} By the arithmetic it fits all the same."
    return verdict, reason, why
