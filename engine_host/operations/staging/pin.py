"""The vLLM that starts use where none is named: planned, installed where it is missing, set, taken back."""

from collections.abc import Awaitable, Callable
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.settings import SettingsFile
from engine_host.operations.installations import InstallationOperations
from engine_host.operations.performs import performs
from engine_host.operations.settings import SettingOperations
from engine_host.protocol.engines import Installation, InstallationPage, PinPlan, PinVllm
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Endpoint
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange

_PIN, _BEFORE = "engine.vllm", "engine.vllm_before"
AUTOMATIC = "automatic"
"""No pin: the best environment that is installed."""


def setting_services(
    settings: SettingsFile,
    events: EventLog,
    endpoint: Callable[[], Endpoint],
    changed: Callable[[tuple[str, ...]], Awaitable[None]],
    installations: InstallationOperations,
    jobs: JobRunner,
) -> tuple[object, ...]:
    """Return the operations on settings, and those on the pin, which is one of them."""
    shown = SettingOperations(settings, events, endpoint, changed)
    return shown, PinOperations(installations, shown, jobs)


class PinOperations:
    """The pin; engines that run go on with theirs."""

    def __init__(
        self, installations: InstallationOperations, settings: SettingOperations, jobs: JobRunner
    ) -> None:
        self._installations, self._settings, self._jobs = installations, settings, jobs

    @performs(ops.PLAN_PIN)
    async def plan(self, asked: PinVllm) -> PinPlan:
        """Return what would change. Raises HostError: not_found, conflict without a pin before."""
        page = await self._installations.page()
        now, before = self._now()
        if asked.version is None and not asked.back:
            return PinPlan(pin=now, now=now, before=before)
        if asked.back and before is None:
            raise HostError(
                Reason.CONFLICT,
                "The pin of vLLM was never changed, so that there is none before it.",
                fix=Fix(
                    text="Name the version that starts are to use.", command="sndr engine pin vllm VERSION"
                ),
            )
        wanted = str(before) if asked.back else str(asked.version)
        chosen = None if wanted == AUTOMATIC else _chosen(page, wanted)
        new = wanted if chosen is None else chosen.id
        installs = chosen is not None and not chosen.present
        changes = []
        if chosen is not None and installs:
            changes.append(f"+ vLLM {new} is installed ({_amount(chosen)})")
        if new != now:
            changes.append(f"~ starts without --installation use {new}, and not {now}")
        return PinPlan(pin=new, now=now, before=before, installs=installs, changes=tuple(changes))

    @performs(ops.PIN)
    async def pin(self, asked: PinVllm) -> Job:
        """Carry the plan out. Raises HostError: not_found, conflict."""
        plan = await self.plan(asked)

        async def work(control: JobControl) -> dict[str, Any]:
            if plan.installs:
                # Before anything changes: where it fails the pin is the one that works.
                await self._installations.carry_out(plan.pin, control)
            if plan.pin != plan.now:
                given = {_PIN: None if plan.pin == AUTOMATIC else plan.pin, _BEFORE: plan.now}
                await self._settings.change(SettingsChange(values=given))
            await self._verify(plan.pin)
            return plan.model_dump(mode="json")

        command = "sndr engine pin --back" if asked.back else f"sndr engine pin vllm {plan.pin}"
        return self._jobs.start(
            JobKind.ENGINE_PIN, tr("Pin vLLM {pin}", pin=plan.pin), f"vllm {plan.pin}", command, work
        )

    def _now(self) -> tuple[str, str | None]:
        values = {one.name: one.value for one in self._settings.page().settings}
        before = values.get(_BEFORE)
        return str(values.get(_PIN) or AUTOMATIC), None if before is None else str(before)

    async def _verify(self, wanted: str) -> None:
        """Raise HostError(verification_failed) unless it is what was asked of it."""
        found, _before = self._now()
        page = await self._installations.page()
        there = wanted == AUTOMATIC or any(one.id == wanted and one.present for one in page.installations)
        if found != wanted or not there:
            raise HostError(
                Reason.VERIFICATION_FAILED,
                tr("The pin is {found}, and {wanted} was asked for.", found=found, wanted=wanted),
                cause="It was changed meanwhile, or the environment was removed.",
                fix=Fix(text="See which there are.", command="sndr engine list"),
                evidence={"pin": found, "installed": there},
            )


def _amount(chosen: Installation) -> str:
    download = f", {chosen.download / 2**30:.1f} GiB to download" if chosen.download else ""
    return f"{chosen.needs_free / 2**30:.1f} GiB free{download}"


def _chosen(page: InstallationPage, wanted: str) -> Installation:
    build = next((one.build for one in page.installations if one.recommended), "cuda")
    for one in sorted(page.installations, key=lambda found: found.build != build):
        if wanted in (one.id, one.version):
            return one
    raise HostError(
        Reason.NOT_FOUND,
        tr("There is no vLLM {wanted} that could be installed.", wanted=repr(wanted[:100])),
        cause=tr("There are {installations}.", installations=", ".join(one.id for one in page.installations)),
        fix=Fix(text="See which there are.", command="sndr engine list"),
        evidence={"wanted": wanted[:200]},
    )
