"""The typed client of the engine host's API; the only importer of httpx, and where errors get their names."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from engine_host.protocol.base import PROTOCOL_MAJOR, Version, Wire
from engine_host.protocol.engines import (
    Backend,
    Engine,
    EnginePage,
    InstallationPage,
    Request,
    RequestPage,
    ServerBuild,
    ServerPage,
)
from engine_host.protocol.errors import Action, ErrorAnswer, Problem, Reason
from engine_host.protocol.events import EVENT, Event
from engine_host.protocol.fit import FitReport, FitRequest, HubModel, HubPage, MeasuredPage, ReadFromHub
from engine_host.protocol.host import HostInfo
from engine_host.protocol.jobs import Job, JobPage
from engine_host.protocol.logs import LogPage
from engine_host.protocol.models import ModelPage
from engine_host.protocol.patches import EnginePatches, PatchDetail, PatchPage, PlannedPatches, SwitchPatches
from engine_host.protocol.plans import BisectRequest, LaunchPlan, LaunchRequest, StartRequest
from engine_host.protocol.presets import (
    CatalogPage,
    EditedPreset,
    EditPreset,
    ExportedPreset,
    ImportedPreset,
    ImportPreset,
    JudgePresets,
    LintPreset,
    PresetChange,
    PresetDetail,
    PresetFile,
    PresetForm,
    PresetLint,
    PresetPage,
    PresetVerdicts,
    ResolvedPreset,
    ResolvePreset,
    SavedPreset,
    SavePreset,
)
from engine_host.protocol.settings import SettingPage, SettingsChange
from engine_host.protocol.telemetry import TelemetryPage
from sndr_gui.host.errors import HostGone, HostMismatch, HostRefused, HostUnreachable
from sndr_gui.host.local_http import LocalTransport
from sndr_gui.host.sse import SseMessage, messages

Answer = TypeVar("Answer", bound=Wire)
HEARTBEAT_LIMIT = 25.0
USER_AGENT = "sndr-window"


class HostClient:
    """Everything that the window asks of a host, over its local socket."""

    def __init__(self, socket: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            transport=LocalTransport(socket),
            base_url="http://sndr",
            headers={"Authorization": f"Bearer {token}", "User-Agent": USER_AGENT},
            timeout=httpx.Timeout(10, connect=5),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    # Reads.

    async def version(self) -> Version:
        """What the host speaks. Raises HostMismatch when this window cannot speak it."""
        version = await self._get("/v1/version", Version)
        if version.major != PROTOCOL_MAJOR:
            older = "the window" if version.major > PROTOCOL_MAJOR else "the engine host"
            raise HostMismatch(
                f"The engine host speaks protocol {version.major}, this window speaks {PROTOCOL_MAJOR}: "
                f"update {older}."
            )
        return version

    async def host(self) -> HostInfo:
        """The machine and the program."""
        return await self._get("/v1/host", HostInfo)

    async def models(self) -> ModelPage:
        """The model files known."""
        return await self._get("/v1/models", ModelPage)

    async def servers(self) -> ServerPage:
        """The llama.cpp servers known."""
        return await self._get("/v1/servers", ServerPage)

    async def engines(self) -> EnginePage:
        """The engines."""
        return await self._get("/v1/engines", EnginePage)

    async def requests(self, engine: str) -> RequestPage:
        """Live and recent requests of one engine."""
        return await self._get(f"/v1/engines/{engine}/requests", RequestPage)

    async def jobs(self) -> JobPage:
        """The jobs, newest first."""
        return await self._get("/v1/jobs", JobPage)

    async def settings(self) -> SettingPage:
        """The host's settings with their provenance."""
        return await self._get("/v1/settings", SettingPage)

    async def patches(self) -> PatchPage:
        """The catalogue of patches."""
        return await self._get("/v1/patches", PatchPage)

    async def patch(self, patch: str, vllm: str | None = None) -> PatchDetail:
        """One patch with what it touches in a vLLM."""
        query: dict[str, str | float] = {"vllm": vllm} if vllm else {}
        return await self._get(f"/v1/patches/{quote(patch, safe='')}", PatchDetail, query)

    async def engine_patches(self, engine: str) -> EnginePatches:
        """What took effect in the processes of one engine."""
        return await self._get(f"/v1/engines/{engine}/patches", EnginePatches)

    async def presets(self) -> PresetPage:
        """The presets, and what is wrong in their files."""
        return await self._get("/v1/presets", PresetPage)

    async def preset(self, preset: str) -> PresetDetail:
        """One preset with its file, its model and where each setting is from."""
        return await self._get(f"/v1/presets/{quote(preset, safe='')}", PresetDetail)

    async def preset_file(self, preset: str) -> PresetFile:
        """The YAML file of a preset, also of one that cannot be used."""
        return await self._get(f"/v1/presets/{quote(preset, safe='')}/file", PresetFile)

    async def export_preset(self, preset: str) -> ExportedPreset:
        """A preset with everything it needs as one text."""
        return await self._get(f"/v1/presets/{quote(preset, safe='')}/export", ExportedPreset)

    async def catalog(self) -> CatalogPage:
        """Models, hardware, profiles and engines of the catalogue."""
        return await self._get("/v1/catalog", CatalogPage)

    async def preset_form(self) -> PresetForm:
        """JSON Schemas for editing a preset."""
        return await self._get("/v1/catalog/form", PresetForm)

    async def installations(self) -> InstallationPage:
        """vLLM's environments."""
        return await self._get("/v1/installations", InstallationPage)

    async def telemetry(self, names: tuple[str, ...], since: float, step: float) -> TelemetryPage:
        """Series from a time on."""
        query: dict[str, str | float] = {"since": since, "step": step}
        if names:
            query["names"] = ",".join(names)
        return await self._get("/v1/telemetry", TelemetryPage, query)

    async def logs(
        self, source: str = "", severity: str = "", after: int | None = None, limit: int = 2000
    ) -> LogPage:
        """Log lines, oldest first."""
        query: dict[str, str | float] = {"limit": limit}
        if source:
            query["source"] = source
        if severity:
            query["severity"] = severity
        if after is not None:
            query["after"] = after
        return await self._get("/v1/logs", LogPage, query)

    # Commands.

    async def plan(self, request: LaunchRequest) -> LaunchPlan:
        """The plan that a launch request becomes."""
        return await self._command("POST", "/v1/plans", LaunchPlan, request.model_dump(mode="json"))

    async def fit(self, request: FitRequest) -> FitReport:
        """What a model needs on a machine, and whether it fits."""
        # Beside a preset only what is set counts; every default would be taken for a wish.
        body = request.model_dump(mode="json", exclude_unset=True)
        return await self._command("POST", "/v1/fit", FitReport, body)

    async def judge_presets(self, asked: JudgePresets) -> PresetVerdicts:
        """The verdict on every preset, what will work best first."""
        return await self._command(
            "POST", "/v1/presets/verdicts", PresetVerdicts, asked.model_dump(mode="json"), timeout=30
        )

    async def hub_models(self) -> HubPage:
        """Configs that were read from Hugging Face before; asks the hub for nothing."""
        return await self._get("/v1/fit/hub", HubPage)

    async def read_from_hub(self, asked: ReadFromHub) -> HubModel:
        """Ask Hugging Face for a model's config.json."""
        body = asked.model_dump(mode="json")
        return await self._command("POST", "/v1/fit/hub", HubModel, body, timeout=60)

    async def fit_starts(self) -> MeasuredPage:
        """Starts whose prediction was compared with what was measured, newest first."""
        return await self._get("/v1/fit/starts", MeasuredPage)

    async def start(self, plan: str) -> Engine:
        """Start a plan, replacing what runs."""
        return await self._command("POST", "/v1/engines", Engine, StartRequest(plan=plan).model_dump())

    async def stop(self, engine: str, now: bool = False) -> Engine:
        """Drain and stop an engine, or end it now."""
        return await self._command("DELETE", f"/v1/engines/{engine}" + ("?now=true" if now else ""), Engine)

    async def cancel_request(self, engine: str, request: str) -> Request:
        """Cancel one request."""
        return await self._command("DELETE", f"/v1/engines/{engine}/requests/{request}", Request)

    async def scan_models(self) -> ModelPage:
        """Look through the model folders again."""
        return await self._command("POST", "/v1/models/scan", ModelPage, timeout=60)

    async def build_server(self, backend: Backend = Backend.AUTO) -> Job:
        """Build the engine for this machine."""
        asked = ServerBuild(backend=backend).model_dump(mode="json")
        return await self._command("POST", "/v1/servers/build", Job, asked)

    async def compare_servers(self) -> Job:
        """Measure the prebuilt server against the built one."""
        return await self._command("POST", "/v1/servers/compare", Job)

    async def cancel_job(self, job: str) -> Job:
        """Cancel a job."""
        return await self._command("DELETE", f"/v1/jobs/{job}", Job)

    async def change_settings(self, values: Mapping[str, Any]) -> SettingPage:
        """Set values; None brings a default back."""
        change = SettingsChange(values=dict(values))
        return await self._command("PUT", "/v1/settings", SettingPage, change.model_dump(mode="json"))

    async def switch_patches(self, change: SwitchPatches) -> PatchPage:
        """Switch patches on or off for the next start."""
        return await self._command("POST", "/v1/patches/switch", PatchPage, change.model_dump(mode="json"))

    async def probe_patches(self, engine: str) -> EnginePatches:
        """Ask every process of an engine whether its patches are live."""
        path = f"/v1/engines/{engine}/patches/probe"
        return await self._command("POST", path, EnginePatches, timeout=60)

    async def start_without(self, engine: str, patch: str) -> Engine:
        """Start an engine again without one patch."""
        path = f"/v1/engines/{engine}/patches/{quote(patch, safe='')}/start-without"
        return await self._command("POST", path, Engine)

    async def bisect_patches(self, request: BisectRequest) -> Job:
        """Find the patch that makes a start fail its check."""
        return await self._command("POST", "/v1/patches/bisect", Job, request.model_dump(mode="json"))

    async def resolve_preset(self, asked: ResolvePreset) -> ResolvedPreset:
        """What a preset comes to on some hardware, and which layers contradict each other."""
        return await self._command(
            "POST", "/v1/presets/resolve", ResolvedPreset, asked.model_dump(mode="json")
        )

    async def lint_preset(self, text: str, preset: str | None = None) -> PresetLint:
        """What is wrong in a text, and what saving it as this preset would change."""
        asked = LintPreset(text=text, id=preset)
        return await self._command("POST", "/v1/presets/lint", PresetLint, asked.model_dump(mode="json"))

    async def edit_preset(self, text: str, changes: tuple[PresetChange, ...]) -> str:
        """A preset's text with values changed; nothing is saved."""
        asked = EditPreset(text=text, changes=changes).model_dump(mode="json")
        return (await self._command("POST", "/v1/presets/edit", EditedPreset, asked)).text

    async def save_preset(self, preset: str, text: str, digest: str | None) -> SavedPreset:
        """Save a person's preset; the digest is that of the file it replaces, None for a new one."""
        asked = SavePreset(text=text, digest=digest)
        path = f"/v1/presets/{quote(preset, safe='')}"
        return await self._command("PUT", path, SavedPreset, asked.model_dump(mode="json"))

    async def remove_preset(self, preset: str) -> SavedPreset:
        """Remove a person's preset; the answer holds its text."""
        return await self._command("DELETE", f"/v1/presets/{quote(preset, safe='')}", SavedPreset)

    async def import_preset(self, asked: ImportPreset) -> ImportedPreset:
        """Take in an exported preset."""
        return await self._command(
            "POST", "/v1/presets/import", ImportedPreset, asked.model_dump(mode="json")
        )

    async def preset_patches(self, asked: ResolvePreset) -> PlannedPatches:
        """The patches that a start of a preset gets on some hardware, without its files."""
        body = asked.model_dump(mode="json")
        return await self._command("POST", "/v1/patches/plan-preset", PlannedPatches, body)

    async def install(self, installation: str) -> Job:
        """Install an environment of vLLM."""
        return await self._command("POST", f"/v1/installations/{installation}", Job)

    async def remove_installation(self, installation: str) -> Job:
        """Remove an environment of vLLM."""
        return await self._command("DELETE", f"/v1/installations/{installation}", Job)

    async def send(self, action: Action) -> None:
        """Send the request that mends a problem."""
        await self._send(action.method, action.path, action.body or None)

    async def quit(self) -> None:
        """Stop the engines that are not kept, then the host."""
        await self._send("POST", "/v1/host/quit", None)

    # Streams.

    async def events(self, after: int, run: str) -> AsyncIterator[Event]:
        """The events after a number. Raises HostGone when the host is silent for 25 s."""
        query: dict[str, str | int] = {"after": after, "run": run}
        async for message in self._stream("GET", "/v1/events", params=query, quiet=HEARTBEAT_LIMIT):
            if message.data:
                try:
                    yield EVENT.validate_json(message.data)
                except ValidationError:
                    # A kind of event that a newer host has and this window does not know.
                    continue

    async def chat(self, body: Mapping[str, Any]) -> AsyncIterator[SseMessage]:
        """The raw messages of a streamed chat completion."""
        async for message in self._stream("POST", "/openai/v1/chat/completions", json_body=body):
            yield message

    async def _stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        json_body: Mapping[str, Any] | None = None,
        quiet: float | None = None,
    ) -> AsyncIterator[SseMessage]:
        timeout = httpx.Timeout(10, connect=5, read=quiet)
        self._check_open()
        try:
            async with self._http.stream(
                method, path, params=params, json=json_body, timeout=timeout
            ) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise _refusal(response)
                lines = response.aiter_lines()
                async with contextlib.aclosing(messages(lines)) as stream:  # type: ignore[type-var]
                    async for message in stream:
                        yield message
        except httpx.ConnectError as error:
            raise HostUnreachable("No engine host answers at its socket.") from error
        except httpx.ReadTimeout as error:
            raise HostGone("The engine host has been silent for 25 seconds.") from error
        except httpx.HTTPError as error:
            raise HostGone("The connection to the engine host ended.") from error

    # One request and its answer.

    def _check_open(self) -> None:
        # The link closes a client that lost its host, also between two tries of what is under way.
        if self._http.is_closed:
            raise HostGone("The connection to the engine host ended.")

    async def _get(
        self, path: str, answer: type[Answer], params: Mapping[str, str | float] | None = None
    ) -> Answer:
        self._check_open()
        try:
            response = await self._http.get(path, params=params)
        except httpx.ConnectError as error:
            raise HostUnreachable("No engine host answers at its socket.") from error
        except httpx.TimeoutException as error:
            raise HostGone("The engine host did not answer in time.") from error
        except httpx.HTTPError as error:
            raise HostGone("The connection to the engine host ended.") from error
        return _parsed(response, answer)

    async def _command(
        self, method: str, path: str, answer: type[Answer], body: Any = None, timeout: float = 10
    ) -> Answer:
        return _parsed(await self._send(method, path, body, timeout), answer)

    async def _send(self, method: str, path: str, body: Any, timeout: float = 10) -> httpx.Response:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        for last in (False, True):
            self._check_open()
            try:
                response = await self._http.request(
                    method, path, json=body, headers=headers, timeout=httpx.Timeout(timeout, connect=5)
                )
            except httpx.ConnectError as error:
                if last:
                    raise HostUnreachable("No engine host answers at its socket.") from error
            except httpx.TimeoutException as error:
                if last:
                    raise HostGone("The engine host did not answer in time.") from error
            except httpx.HTTPError as error:
                # The key makes a second try safe: the host does the thing once.
                if last:
                    raise HostGone("The connection to the engine host ended.") from error
            else:
                if response.status_code >= 400:
                    raise _refusal(response)
                return response
            await asyncio.sleep(0.2)
        raise AssertionError("unreachable")


def _parsed(response: httpx.Response, answer: type[Answer]) -> Answer:
    if response.status_code >= 400:
        raise _refusal(response)
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as error:
        raise HostGone(f"The engine host's answer to {response.url.path} could not be read.") from error


def _refusal(response: httpx.Response) -> HostRefused:
    """The problem in an answer; also one in OpenAI's form, or in none."""
    try:
        body = response.json()
        return HostRefused(ErrorAnswer.model_validate(body).error, response.status_code)
    except (ValueError, ValidationError):
        pass
    return HostRefused(problem_from_openai(response.text, response.status_code), response.status_code)


def problem_from_openai(text: str, status: int = 0) -> Problem:
    """The problem in an error of OpenAI's form."""
    message, reason, evidence = text.strip()[:500], "internal", {}
    with contextlib.suppress(ValueError):
        error = json.loads(text).get("error", {})
        if isinstance(error, dict):
            message = str(error.get("message") or message)
            reason = str(error.get("code") or error.get("type") or reason)
            evidence = error
        else:
            message = str(error)
    known = Reason(reason) if reason in set(Reason) else Reason.INTERNAL
    return Problem(
        reason=known,
        message=message or f"The engine host answered with status {status}.",
        evidence={"status": status, **evidence},
    )
