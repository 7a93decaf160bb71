"""`sndr alerts`: what somebody should look at, and what was."""

import time

import click

from engine_host.cli.output import Exit, Output, command
from engine_host.cli.start.host import connected
from engine_host.cli.text.tables import table
from engine_host.core.sizes import duration
from engine_host.protocol.bench.alerts import Alert, AlertKind, AlertQuery, SeeAlerts
from engine_host.protocol.operations import table as ops

_NEXT = {
    AlertKind.GPU_TEMPERATURE: "sndr top",
    AlertKind.GPU_MEMORY: "sndr top",
    AlertKind.GPU_ECC: "sndr doctor",
    AlertKind.RAM: "sndr top",
    AlertKind.DISK: "sndr models list",
}
_WHERE = "Thresholds are settings: sndr settings get alerts.gpu_temperature"


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also those that are over and were seen.")
@click.option("--seen", is_flag=True, help="Put all away; those that last stay until they end.")
@command("sndr alerts", "sndr alerts --seen")
def alerts(out: Output, everything: bool, seen: bool) -> Exit | None:
    """Say what needs attention: heat, full memory and disks, memory errors, engines that died."""
    with connected() as client:
        if seen:
            client.call(ops.SEE_ALERTS, SeeAlerts())
        page = client.call(ops.ALERTS, AlertQuery(everything=everything))
    now = time.time()
    rows = [
        (time.strftime("%Y-%m-%d %H:%M", time.localtime(one.at)), _lasts(one, now), one.told, _next(one))
        for one in page.alerts
    ]
    if not rows:
        out.result(page, ["Nothing needs attention.", _WHERE])
        return None
    out.result(page, [*table(("since", "lasts", "alert", "next"), rows), "", _WHERE])
    return None


def _next(alert: Alert) -> str:
    """Return the command that tells more: of an engine what it died of, and what would have saved it."""
    return _NEXT.get(alert.kind, f"sndr autopsy {alert.engine or alert.subject}")


def _lasts(alert: Alert, now: float) -> str:
    """Return for how long it has lasted, or that it was a moment or is over."""
    if alert.ended_at is None:
        return f"still, {duration(now - alert.at)}"
    return "" if alert.ended_at == alert.at else duration(alert.ended_at - alert.at)
