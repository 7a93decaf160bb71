"""Refuse public model ids that some client breaks on, with one to take instead."""

from engine_host.core.errors import HostError
from engine_host.protocol.endpoint.model_ids import LONGEST_ID, fault_of_id, suggested_id
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr


def check_id(name: str) -> None:
    """Refuse an id that some client breaks on. Raises HostError(setting_invalid) with one to take instead."""
    wrong = fault_of_id(name)
    if wrong is None:
        return
    better = suggested_id(name)
    raise HostError(
        Reason.SETTING_INVALID,
        tr("{name} is no id for a route: {wrong}.", name=repr(name[:LONGEST_ID]), wrong=wrong),
        cause="Clients take a colon for a tag, a slash for a provider, and put ids into paths and headers.",
        fix=Fix(text=tr("Call it {better}.", better=better))
        if better
        else "Use letters, digits, dots, hyphens, underscores.",
        evidence={"id": name[:LONGEST_ID], "suggested": better},
    )
