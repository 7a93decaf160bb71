"""Find contradictions of layers: values beyond a limit, and values that exclude each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine_host.protocol.catalog import Limit
from engine_host.protocol.engine_settings.derived import exclusive
from engine_host.protocol.engine_settings.questions import DRAFTS_ITSELF
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Layer
from engine_host.protocol.presets import ResolvedSetting, SetBy, SettingConflict

MTP = tuple(DRAFTS_ITSELF.values())


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit and the layer that it is from."""

    limit: Limit
    by: SetBy


def conflicts(
    settings: Sequence[ResolvedSetting], bounds: Iterable[Bound], heads: SetBy | None
) -> Iterator[SettingConflict]:
    """Every conflict among the settings that won; `heads` holds how many the model's attention has."""
    values = {setting.name: setting for setting in settings}
    for bound in bounds:
        setting = values.get(bound.limit.setting)
        if (
            setting is not None
            and setting.value is not None
            and (reason := _beyond(setting.value, bound.limit))
        ):
            yield _conflict((setting.name,), setting.by, bound.by, f"but {reason}", bound.limit.because)
    for first, second in exclusive():
        yield from _excluded(values.get(first), values.get(second))
    parallel = values.get("tensor_parallel")
    if heads is not None and parallel is not None and parallel.value and heads.value % parallel.value:
        reason = tr(
            "but the model has {heads} attention heads, which {parallel} GPUs cannot share",
            heads=heads.value,
            parallel=parallel.value,
        )
        because = tr("each GPU gets as many whole heads as every other")
        yield _conflict(("tensor_parallel",), parallel.by, heads, reason, because)


def described(by: SetBy) -> str:
    """Describe a layer for people: its name, file and line."""
    place = by.file if by.line is None else f"{by.file}, line {by.line}"
    return f"{by.layer.value} ({place})" if place else str(by.layer.value)


def _excluded(first: ResolvedSetting | None, second: ResolvedSetting | None) -> Iterator[SettingConflict]:
    if first is None or second is None or first.value is None or second.value is None:
        return
    # An engine's default gives way; what a person or a file says is meant.
    if Layer.ENGINE in {first.by.layer, second.by.layer}:
        return
    clause = f"and {second.name} {second.value}"
    because = tr("both say how much memory the KV cache gets")
    yield _conflict((first.name, second.name), first.by, second.by, clause, because, first.name)


def _conflict(
    names: tuple[str, ...], by: SetBy, limit: SetBy, clause: str, because: str, name: str = ""
) -> SettingConflict:
    message = tr(
        "{name} is {shown} by the layer {described}, {clause} by the layer {described2}",
        name=name or names[0],
        shown=_shown(by.value),
        described=described(by),
        clause=clause,
        described2=described(limit),
    )
    return SettingConflict(settings=names, message=message, because=because, by=by, limit=limit)


def _beyond(value: Any, limit: Limit) -> str:
    """Return the reason why a value is beyond a limit; empty if it is within."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if limit.at_most is not None and value > limit.at_most:
            return f"at most {limit.at_most:.12g} is possible"
        if limit.at_least is not None and value < limit.at_least:
            return f"at least {limit.at_least:.12g} is needed"
    word = _shown(value)
    if limit.one_of is not None and word not in limit.one_of:
        return f"only {', '.join(limit.one_of)} is possible"
    if limit.none_of is not None and word in limit.none_of:
        return f"{word} is not possible"
    return ""


def _shown(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def attention_heads(shape: Mapping[str, Any]) -> tuple[int, tuple[str, ...]] | None:
    """Return the number of attention heads and the key path that gives it; None if there is none."""
    inner = shape.get("text_config")
    if isinstance(inner, dict) and isinstance(inner.get("num_attention_heads"), int):
        return inner["num_attention_heads"], ("shape", "text_config", "num_attention_heads")
    heads = shape.get("num_attention_heads")
    return (heads, ("shape", "num_attention_heads")) if isinstance(heads, int) else None
