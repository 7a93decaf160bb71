"""A launch plan as text: what would run, each setting with its layer, findings with what to do."""

import shlex

from engine_host.cli.output import CODES, Exit, size
from engine_host.cli.start.consent import demand_lines
from engine_host.protocol.launch.plans import MAIN_MEMORY, Finding, LaunchPlan


def plan_lines(plan: LaunchPlan) -> list[str]:
    """Everything that a start will do."""
    of = f"{plan.preset}, " if plan.preset else ""
    return [
        f"{plan.name}: {of}{plan.model_path}",
        f"engine: {plan.engine}, {plan.server.value} {plan.server_version}",
        f"command: {shlex.join(plan.argv)}",
        *(
            f"  {one.name} = {_shown(one.value)}  ({one.layer.value}{': ' + one.why if one.why else ''})"
            for one in plan.settings
        ),
        *_patch_lines(plan),
        *(demand_lines(plan.consent) if plan.consent is not None else ()),
        *_place_lines(plan),
        *(f"changes {change}" for change in plan.changes),
        *(line for finding in plan.findings for line in finding_lines(finding)),
        f"the same: {plan.command}",
    ]


def _shown(value: object) -> str:
    """A value in words: None leaves it to the engine, and a list is its words."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


def finding_lines(finding: Finding) -> list[str]:
    """Format a finding with its fix."""
    lines = [f"{finding.severity.value}: {finding.message}"]
    if finding.fix is not None:
        lines.append(f"  {finding.fix.text}")
        if finding.fix.command:
            lines.append(f"  $ {finding.fix.command}")
    return lines


def exit_of(plan: LaunchPlan) -> Exit | None:
    """The exit code that a start of this plan would have at once; None when it could be started."""
    stopping = next((finding for finding in plan.findings if finding.severity == "error"), None)
    if stopping is None:
        return None
    return CODES[stopping.reason] if stopping.reason is not None else Exit.FAILED


def _place_lines(plan: LaunchPlan) -> list[str]:
    """The memory that it takes, and the engines that it is instead of and beside."""
    needs = [
        f"{'main memory' if need.device == MAIN_MEMORY else need.device} "
        f"{'not known' if need.bytes is None else size(need.bytes)}"
        for need in plan.needs
    ]
    return [
        *([f"GPUs: {', '.join(plan.gpus)}"] if plan.gpus else []),
        *([f"takes about: {', '.join(needs)}"] if needs else []),
        *([f"instead of: {', '.join(one.name for one in plan.instead_of)}"] if plan.instead_of else []),
        *([f"beside: {', '.join(one.name for one in plan.beside)}"] if plan.beside else []),
    ]


def _patch_lines(plan: LaunchPlan) -> list[str]:
    """The patches of a plan: those it applies, then why the others are not."""
    if plan.patches is None:
        return []
    return [
        f"patches: {', '.join(plan.patches.chosen) or 'none'}",
        *(
            f"  not {one.patch}  ({one.reason.value}{': ' + one.detail if one.detail else ''})"
            for one in plan.patches.left_out
        ),
    ]
