"""Line breaks of every kind in every string of a deployment are refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.deploy.deployment import Deployment, Download, Mount, Secret, refuse_control_characters
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import deployed, wanted_of

BREAKS = ["\n", "\r", "\x00", "\x1b", "\x85", "\u2028", "\u2029"]
PLACES: dict[str, Callable[[Deployment, str], Deployment]] = {
    "title": lambda one, bad: replace(one, title=bad),
    "alias": lambda one, bad: replace(one, alias=bad),
    "model": lambda one, bad: replace(one, model=bad),
    "version": lambda one, bad: replace(one, version=bad),
    "program": lambda one, bad: replace(one, program=(bad,)),
    "argument": lambda one, bad: replace(one, arguments=(*one.arguments, bad)),
    "variable": lambda one, bad: replace(one, environment={**one.environment, bad: "1"}),
    "value": lambda one, bad: replace(one, environment={**one.environment, "A": bad}),
    "second download": lambda one, bad: replace(
        one, downloads=(Download("https://x/a", "a"), Download("https://x/b", bad))
    ),
    "address of a download": lambda one, bad: replace(one, downloads=(Download(bad, "a"),)),
    "mount": lambda one, bad: replace(one, mounts=(Mount(Path("/m") / bad, "m"),)),
    "place of a mount": lambda one, bad: replace(one, mounts=(Mount(Path("/m"), bad),)),
    "secret": lambda one, bad: replace(one, secrets=(Secret("A", bad),)),
    "address": lambda one, bad: replace(one, address=bad),
}


@pytest.mark.parametrize("letter", BREAKS)
@pytest.mark.parametrize("place", PLACES)
def test_a_break_is_refused_wherever_it_stands(place: str, letter: str) -> None:
    whole = deployed(wanted_of("demo-llamacpp"), RenderTarget.SYSTEMD)
    refuse_control_characters(whole)
    with pytest.raises(HostError) as caught:
        refuse_control_characters(PLACES[place](whole, f"x{letter}ExecStartPre=/bin/sh"))
    assert caught.value.problem.reason is Reason.SETTING_INVALID
