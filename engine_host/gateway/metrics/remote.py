"""The figures of other machines and their engines that their connection has told: nobody is asked for them.

The names are others than those of this machine and its engines, so that no sum counts one twice where the
endpoint of the other machine is read too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine_host.protocol.telemetry import Sample

FRESH = 30.0
"""Seconds after which what a machine told is of then: it is asked every five to ten."""
_ENGINE = (
    ("slots_busy", "requests_running", "Requests running, in requests"),
    ("requests_waiting", "requests_waiting", "Requests waiting, in requests"),
    ("kv_tokens", "kv_tokens", "KV cache, in tokens"),
    ("kv_capacity", "kv_capacity_tokens", "Tokens that the KV cache has room for"),
    ("kv_usage", "kv_usage_ratio", "KV cache filled, 0 to 1"),
    ("memory", "memory_bytes", "Engine RAM, in bytes"),
    ("decode_rate", "decode_tokens_per_second", "Decode, in tokens a second"),
    ("prefill_rate", "prefill_tokens_per_second", "Prefill, in tokens a second"),
    ("prompt_tokens_total", "prompt_tokens_total", "Prompt tokens that the engine has read"),
    ("generated_tokens_total", "generated_tokens_total", "Tokens generated since its start"),
    ("preemptions_total", "preemptions_total", "Requests that the engine preempted"),
)
READ = tuple(name for name, _, _ in _ENGINE)
"""The readings of an engine there that are shown."""


@dataclass(frozen=True)
class RemoteEngineFigures:
    """The numbers that an engine of another machine has told, by the names of its readings."""

    id: str
    model: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class MachineSample:
    """The last reading of a machine without an engine host; `gpus` has UUID and name by number."""

    sample: Sample
    gpus: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class RemoteFigures:
    """The figures that a connected machine told last; `rate` are the tokens a second of all its engines."""

    name: str
    at: float | None = None
    rate: float | None = None
    engines: Sequence[RemoteEngineFigures] = ()
    engines_at: float | None = None
    machine: MachineSample | None = None


def remote_values(told: RemoteFigures, now: float) -> Iterator[tuple[str, str, float, Mapping[str, str]]]:
    """Yield name, text, value and labels of what was told lately; what was not is absent."""
    if told.rate is not None and told.at is not None and now - told.at <= FRESH:
        text = "Decode of all engines of another machine, in tokens a second; as it told its connection."
        yield "sndr_remote_decode_tokens_per_second", text, told.rate, {}
    if told.engines_at is None or now - told.engines_at > FRESH:
        return
    for engine in told.engines:
        for reading, metric, text in _ENGINE:
            if (value := engine.values.get(reading)) is not None:
                labels = {"engine": engine.id, "model": engine.model}
                yield (
                    f"sndr_remote_engine_{metric}",
                    f"{text}; as the other machine's host told.",
                    value,
                    labels,
                )
