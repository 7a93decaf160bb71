"""A start that ends an engine for its name alone: the words on that, and a name that is free."""

from __future__ import annotations

from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import LaunchPlan
from sndr_gui.kit import formats
from sndr_gui.models.launch.placement import Remedy, Room


def ends_its_namesake(plan: LaunchPlan) -> bool:
    """Return True where a plan that can start ends the engine of its own name, and no other."""
    return plan.startable and [one.name for one in plan.instead_of] == [plan.name]


def room_of_namesake(plan: LaunchPlan) -> Room:
    """Return the words on an engine that ends for the name, with the click that takes a free one."""
    taken = {one.name for one in (*plan.beside, *plan.instead_of)}
    number = 2
    while f"{plan.name}-{number}" in taken:
        number += 1
    free, name = f"{plan.name}-{number}", formats.shortened(plan.name)
    said = tr("Ends {name} first: it runs under the same name. Another name runs beside it.", name=name)
    return Room(said, "warn", (Remedy(tr("Start as {free}", free=formats.shortened(free)), name=free),))
