"""Engines' own metrics, labelled with engine and model; what one writes cannot break the others' lines."""

import asyncio
import time
from collections.abc import Iterator, Sequence

from engine_host.engines.metrics import MOST_BYTES, families_of
from engine_host.gateway.directory import Target
from engine_host.gateway.metrics.exposition import Family, Line
from engine_host.gateway.upstream import Upstream, UpstreamLostError

_MOST_SAMPLES = 20_000
_PATIENCE = 3.0
_OURS = "sndr_"
_KINDS = {"counter", "gauge", "histogram", "summary"}
_FRESH = 1.0
"""Seconds for which one reading answers everybody, so that no client has engines asked all the time."""


class EngineMetrics:
    """Asks engines for their metrics, at most once a second."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._read_at = float("-inf")
        self._read: list[Family] = []

    async def families(self, targets: Sequence[Target]) -> list[Family]:
        """Return what the engines tell; one that does not answer in time is shown as not up."""
        async with self._turn:
            if time.monotonic() - self._read_at > _FRESH:
                self._read = await _read(targets)
                self._read_at = time.monotonic()
            return self._read


async def _read(targets: Sequence[Target]) -> list[Family]:
    texts = await asyncio.gather(*map(_told, targets))
    # Of a long text the parser takes a tenth of a second.
    return await asyncio.to_thread(_families, list(zip(targets, texts, strict=True)))


async def _told(target: Target) -> str | None:
    """Return an engine's text; None when it does not answer, or with something else."""
    try:
        async with asyncio.timeout(_PATIENCE), await Upstream.open(target, "GET", "/metrics") as upstream:
            await upstream.head()
            body = await upstream.rest(MOST_BYTES)
            return body.decode("utf-8", "replace") if upstream.status == 200 else None
    except (UpstreamLostError, TimeoutError):
        return None


def _families(told: Sequence[tuple[Target, str | None]]) -> list[Family]:
    up = Family("sndr_engine_metrics_up", "gauge", "1 if the engine told its own metrics.")
    found = [up]
    for target, text in told:
        labels = {"engine": target.engine, "model": target.name}
        try:
            parsed = list(_labelled(text, labels)) if text is not None else []
        except ValueError:
            parsed = []
        up.add(1 if parsed else 0, **labels)
        found += parsed
    return found


def _labelled(text: str, labels: dict[str, str]) -> Iterator[Family]:
    """Yield an engine's families with our labels. Raises ValueError for text in another format."""
    samples = 0
    for family in families_of(text):
        kind = family.type if family.type in _KINDS else "untyped"
        # The parser takes the ending off a counter's name; its samples keep it.
        is_total = kind == "counter" and any(one.name == f"{family.name}_total" for one in family.samples)
        name = f"{family.name}_total" if is_total else family.name
        if name.startswith(_OURS):
            continue
        made = Family(name, kind, family.documentation)
        for sample in family.samples:
            samples += 1
            if samples > _MOST_SAMPLES:
                return
            own = {f"exported_{key}" if key in labels else key: text for key, text in sample.labels.items()}
            made.lines.append(Line(sample.name, {**own, **labels}, sample.value))
        yield made
