"""The steps of an install there; the one that standard input names is done.

These modules are sent to the other machine and need Python 3.8 and its standard library alone. What is to be
done comes as JSON; the answer is the last line that begins with a mark, because a shell may print things of
its own before it.
"""

from __future__ import annotations

from typing import Any, Callable

from engine_host.remote.install.there.carrying import carry_out
from engine_host.remote.install.there.probing import probe
from engine_host.remote.install.there.releases import begin, demo, environment, switch
from engine_host.remote.install.there.removal import abandon, uninstall

STEPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    one.__name__: one for one in (probe, begin, environment, switch, demo, abandon, uninstall)
}


_CHANGING = STEPS.keys() - {"probe", "demo"}
# The others bring what they began to an end by themselves: half a switch would leave no host.
_END_WITH_CALLER = {"probe", "begin", "environment"}


def main() -> int:
    """Do the step that standard input names; 0 also when it failed, as the answer says it."""
    return carry_out(STEPS, _CHANGING, _END_WITH_CALLER)
