"""Prometheus' text of an engine: its samples, and quantiles of its histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine_host.protocol.engines import Latency

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.samples import Sample

MOST_BYTES = 2 << 20
"""Bytes of an answer with metrics; those of vLLM have 60 KB."""
_LARGEST = 1e15


def families_of(text: str) -> list[Metric]:
    """Return the families of a text. Raises ValueError for text that is not in Prometheus' format."""
    # The library takes 4 MB, for which no host without an engine has use.
    from prometheus_client.parser import text_string_to_metric_families

    try:
        return list(text_string_to_metric_families(text))
    except IndexError as error:
        # The parser looks behind the end of some lines.
        raise ValueError("it is not in Prometheus' format") from error


class Metrics:
    """The samples of one answer, by name without the prefix; engines of one server are added up."""

    def __init__(self, text: str, prefix: str) -> None:
        """Raises ValueError for text that is not in Prometheus' format.

        A value that is legal there and no count (`inf`, `nan`) is left out.
        """
        self._samples: dict[str, list[Sample]] = {}
        for family in families_of(text):
            for sample in family.samples:
                if sample.name.startswith(prefix) and abs(sample.value) < _LARGEST:
                    self._samples.setdefault(sample.name.removeprefix(prefix), []).append(sample)

    def total(self, name: str, **labels: str) -> float | None:
        """The sum over the samples of this name that have these labels; None when there is none."""
        found = [
            sample.value
            for sample in self._samples.get(name, ())
            if all(sample.labels.get(label) == value for label, value in labels.items())
        ]
        return sum(found) if found else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The samples of a name, added up by one label."""
        found: dict[str, float] = {}
        for sample in self._samples.get(name, ()):
            if (value := sample.labels.get(label)) is not None:
                found[value] = found.get(value, 0.0) + sample.value
        return found

    def label(self, name: str, label: str) -> str | None:
        """A label of the first sample of this name."""
        for sample in self._samples.get(name, ()):
            return sample.labels.get(label)
        return None

    def latency(self, name: str, shown: str) -> Latency | None:
        """A histogram in seconds; None when the engine does not keep it."""
        count = self.total(f"{name}_count")
        if count is None:
            return None
        if count < 1:
            return Latency(name=shown, count=0)
        buckets = sorted(
            (float(bound), value) for bound, value in self.by_label(f"{name}_bucket", "le").items()
        )
        spent = self.total(f"{name}_sum")
        return Latency(
            name=shown,
            count=int(count),
            mean=None if spent is None else spent / count,
            p50=quantile(buckets, 0.50),
            p95=quantile(buckets, 0.95),
            p50_below=below(buckets, 0.50),
            p95_below=below(buckets, 0.95),
        )


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """A quantile of cumulative (upper bound, count) pairs, linear inside its bucket.

    As Prometheus' histogram_quantile, but None also in the first bucket: between zero and its bound nothing
    is known, and a line drawn there would be no measurement. None in the last, open one.
    """
    if not buckets or buckets[-1][1] <= 0:
        return None
    rank = share * buckets[-1][1]
    lower, under = None, 0.0
    for bound, count in buckets:
        if count >= rank:
            if lower is None or bound == float("inf"):
                return None
            inside = count - under
            return bound if inside <= 0 else lower + (bound - lower) * (rank - under) / inside
        lower, under = bound, count
    return None


def below(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The bound of the first bucket where that bucket holds the quantile."""
    if not buckets or buckets[-1][1] <= 0 or buckets[0][1] < share * buckets[-1][1]:
        return None
    return buckets[0][0]


def whole(value: float | None) -> int | None:
    """A counter as a number; a sum of many may be none."""
    return int(value) if value is not None and abs(value) < _LARGEST else None


def share_of(part: float | None, drafts: float | None) -> float | None:
    """Return a counter over the number of drafts; None before the first one."""
    return part / drafts if part is not None and drafts is not None and drafts >= 1 else None
