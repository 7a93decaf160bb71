"""A plan for another machine, as a terminal shows it."""

from engine_host.cli.remote.install import plan_lines
from engine_host.core.findings.table import finding
from engine_host.protocol.remote.install import PlannedChange, RemoteChange, RemoteInstallPlan


def test_a_plan_is_a_diff_with_sizes_and_what_to_do() -> None:
    plan = RemoteInstallPlan(
        host="gpu",
        changes=(
            PlannedChange(
                kind=RemoteChange.ADD, what="/r/incoming/x.whl", size=33 << 20, note="removed in the end"
            ),
            PlannedChange(kind=RemoteChange.ADD, what="/u/sndr-host.service", text="[Unit]\nA=b\n"),
            PlannedChange(kind=RemoteChange.CHANGE, what="/r/current -> new", note="was old"),
            PlannedChange(kind=RemoteChange.REMOVE, what="/r/older"),
            PlannedChange(kind=RemoteChange.KEEP, what="/c", note="was there before"),
            PlannedChange(kind=RemoteChange.RUN, what="systemctl --user daemon-reload"),
        ),
        findings=(finding("remote.older", host="gpu", program="0.1", here="0.2"),),
    )
    lines = plan_lines(plan)
    assert lines[:8] == [
        "+ /r/incoming/x.whl  (33.0 MiB, removed in the end)",
        "+ /u/sndr-host.service",
        "  + [Unit]",
        "  + A=b",
        "~ /r/current -> new  (was old)",
        "- /r/older",
        "  /c  (was there before)",
        "$ systemctl --user daemon-reload",
    ]
    assert lines[8].startswith("info: gpu runs 0.1, which is older")
    assert lines[-1].strip() == "$ sndr host update gpu"
