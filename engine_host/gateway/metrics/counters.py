"""The endpoint's own figures, counted from what the request log publishes: numbers alone, no text."""

from collections import defaultdict
from collections.abc import Iterator

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.metrics.exposition import Family
from engine_host.protocol.engines import Request, RequestState

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_ENDED = {
    RequestState.DONE: "done",
    RequestState.FAILED: "failed",
    RequestState.CANCELLED: "cancelled",
}
_MOST_MODELS = 200
"""Names of models that are counted apart; a script that starts thousands must not fill memory."""


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * len(_SECONDS)
        self.count = 0
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum += seconds
        for place, bound in enumerate(_SECONDS):
            if seconds <= bound:
                self.counts[place] += 1


class EndpointCounters:
    """Counts requests, tokens and times by model and route; takes each state of a request once."""

    def __init__(self) -> None:
        self._ended: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._refused: defaultdict[str, int] = defaultdict(int)
        self._tokens: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._times: defaultdict[tuple[str, str], _Histogram] = defaultdict(_Histogram)
        self._models: set[str] = set()

    def take(self, request: Request) -> None:
        """Count a request that has ended; others are ignored."""
        outcome = _ENDED.get(request.state)
        if outcome is None:
            return
        model = self._counted(request.model)
        self._ended[model, request.route, outcome] += 1
        for kind, tokens in (
            ("prompt", request.prompt_tokens),
            ("cached", request.cached_tokens),
            ("generated", request.generated_tokens),
        ):
            if tokens is not None:
                self._tokens[model, kind] += tokens
        for name, seconds in (
            ("queue", request.waited),
            ("first_token", request.ttft),
            ("request", request.ended_at and request.ended_at - request.created_at),
        ):
            if seconds is not None:
                self._times[model, name].add(max(0.0, seconds))

    def refuse(self, fault: EndpointError) -> None:
        """Count a request that was answered before an engine was asked."""
        self._refused[fault.code] += 1

    def families(self) -> Iterator[Family]:
        """Yield what was counted since the host started."""
        ended = Family("sndr_requests_total", "counter", "Requests that ended, by outcome.")
        for (model, route, outcome), count in self._ended.items():
            ended.add(count, model=model, route=route, outcome=outcome)
        yield ended
        refused = Family("sndr_refusals_total", "counter", "Requests refused before any engine's work.")
        for code, count in self._refused.items():
            refused.add(count, code=code)
        yield refused
        tokens = Family("sndr_tokens_total", "counter", "Tokens of requests that ended, as engines report.")
        for (model, kind), count in self._tokens.items():
            tokens.add(count, model=model, kind=kind)
        yield tokens
        for name, help_text in (
            ("queue", "Seconds that a request waited for a slot."),
            ("first_token", "Seconds from a request to the first content of a stream."),
            ("request", "Seconds from a request to the end of its answer."),
        ):
            yield self._histogram(name, help_text)

    def _histogram(self, name: str, help_text: str) -> Family:
        family = Family(f"sndr_{name}_seconds", "histogram", help_text)
        for (model, kind), counted in self._times.items():
            if kind != name:
                continue
            for bound, count in zip(_SECONDS, counted.counts, strict=True):
                family.add(count, "_bucket", model=model, le=str(bound))
            family.add(counted.count, "_bucket", model=model, le="+Inf")
            family.add(counted.sum, "_sum", model=model)
            family.add(counted.count, "_count", model=model)
        return family

    def _counted(self, model: str) -> str:
        if model in self._models or len(self._models) < _MOST_MODELS:
            self._models.add(model)
            return model
        return "other"
