"""`sndr host watch`: what the watchdogs of a host's services saw last."""

import shlex
import time
from pathlib import PurePosixPath

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.remote.connecting import connect
from engine_host.cli.start.host import find_or_start
from engine_host.cli.text.tables import table
from engine_host.protocol.operations import remote_hosts as ops
from engine_host.protocol.remote.hosts import WatchdogPage, WatchdogState

_WELL = frozenset({"healthy", "busy", "starting", "rehydrated"})
_LATE = 600.0
"""Seconds after which a watchdog that looks every two minutes does not run any more."""


@click.command("watch")
@click.argument("name")
@click.option("--events", is_flag=True, help="Also what changed before, the newest last.")
@command("sndr host watch gpu")
def watch(out: Output, name: str, events: bool) -> Exit | None:
    """Print what the watchdogs of NAME's services saw last; exit code 5 if one is not well.

    They look every two minutes, also while nobody is connected.
    """
    with find_or_start() as hold:
        connect(hold.client, name, out)
        page = hold.client.call(ops.HOST_WATCHDOGS, name=name)
    out.result(page, _lines(page, events) if page.watchdogs else _nothing(page.host))
    well = all(one.state in _WELL and not _late(one, page.read_at) for one in page.watchdogs)
    return None if well else Exit.ENGINE


def _nothing(host: str) -> str:
    return f"No service there has a watchdog. A unit comes with its own: sndr host unit install {host} PRESET"


def _lines(page: WatchdogPage, events: bool) -> list[str]:
    rows = [
        (one.service, one.state.replace("_", " "), _age(one, page.read_at), str(one.restarts), one.why)
        for one in page.watchdogs
    ]
    lines = list(table(("service", "state", "looked", "restarts", "why"), rows))
    for one in page.watchdogs:
        for check in one.checks:
            if check.ok is not True and check.detail:
                lines.append(f"{one.service}: {check.name}: {check.detail}")
        if one.missing and one.awaited:
            gone = ", ".join(one.missing)
            lines.append(f"{one.service}: {gone} is not there. It is sent again from where it was sent.")
        elif one.missing:
            folder = str(PurePosixPath(one.missing[0]).parent)
            send = shlex.join(["sndr", "host", "send", page.host, "MODEL", "--to", folder])
            lines.append(f"{one.service}: {', '.join(one.missing)} is not there. Send it from here: {send}")
        if events:
            lines += [
                f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(event.at))}  {one.service}: "
                f"{event.state.replace('_', ' ')}{f', {event.why}' if event.why else ''}"
                for event in one.events
            ]
    return lines


def _age(one: WatchdogState, now: float) -> str:
    if one.at is None:
        return "not yet"
    return f"{max(0.0, now - one.at):.0f} s ago{', its timer does not run' if _late(one, now) else ''}"


def _late(one: WatchdogState, now: float) -> bool:
    return one.at is not None and now - one.at > _LATE
