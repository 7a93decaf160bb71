"""The state of each engine at this moment: requests at work and in the queue, and slots."""

from collections.abc import Mapping, Sequence

from engine_host import __version__
from engine_host.gateway.access.admission import Admission
from engine_host.gateway.directory import Target
from engine_host.gateway.metrics.exposition import Family


def live(
    targets: Sequence[Target], admission: Admission, loads: Mapping[str, int] | None = None
) -> list[Family]:
    """Return the families of the engines that run; `loads` are the requests that wait for a model's load."""
    build = Family("sndr_build_info", "gauge", "The program that answers.")
    build.add(1, version=__version__)
    active = Family("sndr_requests_active", "gauge", "Requests that an engine works on.")
    waiting = Family("sndr_requests_waiting", "gauge", "Requests that wait for a slot of an engine.")
    slots = Family("sndr_slots", "gauge", "Requests that an engine works on at most.")
    context = Family("sndr_context_tokens", "gauge", "Tokens that one request may use.")
    for target in targets:
        labels = {"engine": target.engine, "model": target.name}
        active.add(admission.active(target.engine), **labels)
        waiting.add(admission.waiting(target.engine), **labels)
        slots.add(target.slots, **labels)
        context.add(target.context, **labels)
    loading = Family("sndr_requests_loading", "gauge", "Requests that wait for the load of a model.")
    for name, count in (loads or {}).items():
        loading.add(count, model=name)
    return [*([loading] if loads else []), build, active, waiting, slots, context]
