"""The choices of the form of Launch: servers, environments and values of each field, as the host has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine_host.protocol.engine_settings.row import OFF, EngineSetting
from engine_host.protocol.engine_settings.table import SETTINGS
from engine_host.protocol.engines import ServerInfo, ServerPage
from engine_host.protocol.language import tr
from engine_host.protocol.launch.fit import FitReport, KvChoice, Verdict
from engine_host.protocol.launch.plans import LaunchPlan, ServerChoice
from sndr_gui.kit import formats
from sndr_gui.models.engine.installations import InstallationsModel, title_of
from sndr_gui.models.engine.start import SERVER_NAMES
from sndr_gui.models.launch.subject import VLLM, Subject

Choice = tuple[str, Any]
_KV = ("kv_cache_dtype", "kv_type_k", "kv_type_v")


@dataclass(frozen=True)
class Offers:
    """The choices for one subject, as far as the host's lists, the plan and the fit report say them."""

    servers: ServerPage | None
    installations: InstallationsModel
    subject: Subject | None
    form_server: ServerChoice
    build: str
    plan: LaunchPlan | None
    report: FitReport | None

    def server(self) -> ServerInfo | None:
        """The server of llama.cpp that the form's choice means now."""
        page = self.servers
        if page is None:
            return None
        choice = page.next_start if self.form_server is ServerChoice.AUTO else self.form_server
        return next((server for server in page.servers if server.choice is choice), None)

    def server_choices(self) -> tuple[tuple[str, ServerChoice], ...]:
        """The servers that can be chosen."""
        page = self.servers
        choices: list[tuple[str, ServerChoice]] = []
        if page is not None:
            auto = (
                tr("Automatic ({server_names})", server_names=formats.inside(SERVER_NAMES[page.next_start]))
                if page.next_start
                else tr("Automatic")
            )
            choices.append((auto, ServerChoice.AUTO))
            for server in page.servers:
                if server.present and server.problem is None:
                    choices.append((f"{SERVER_NAMES[server.choice]} · {server.version}", server.choice))
        return tuple(choices)

    def environment_choices(self) -> tuple[Choice, ...]:
        """The environments that can be chosen, those to be installed first marked."""
        fitting = (one for one in self.installations.all if one.present and one.build == self.build)
        best = next(fitting, None) or self.installations.resolve("")
        # The caption says whose environment it is; the box has little room.
        name = title_of(best).removeprefix("vLLM ") if best else ""
        found: list[Choice] = [(tr("Automatic ({name})", name=name) if name else tr("Automatic"), "")]
        for one in self.installations.all:
            state = (
                ""
                if one.present
                else ("  ·  " + tr("damaged"))
                if one.problem
                else ("  ·  " + tr("not installed"))
            )
            found.append((title_of(one) + state, one.id))
        return tuple(found)

    def choices(self, field: EngineSetting) -> tuple[Choice, ...]:
        """Return the choices of a field beside its default."""
        if self.subject is not None and self.subject.engine is VLLM:
            found = choices_of(field, self.build, self.subject)
        elif field.name in ("kv_type_k", "kv_type_v"):
            found = tuple((self._kv_name(kind), kind) for kind in self.kv_types())
        elif field.name == "speculation":
            found = ((tr("Off"), OFF), *((kind, kind) for kind in self.speculation_kinds()))
        else:
            found = tuple((one.label, one.value) for one in field.choices)
        if field.name in _KV:
            return tuple((label + self._reach(kind), kind) for label, kind in found)
        return found

    def kv_types(self) -> tuple[str, ...]:
        """The KV cache types that this server of llama.cpp offers."""
        server = self.server()
        return server.kv_types if server else ()

    def _kv_name(self, kind: str) -> str:
        """Return the meaning of a KV type for this model on this server, as far as the plan has said."""
        return self.plan.kv_types.get(kind, kind) if self.plan else kind

    def _reach(self, kind: str) -> str:
        """Return the longest context with a KV type, where that was computed."""
        choices: tuple[KvChoice, ...] = self.report.kv_choices if self.report else ()
        found = next((choice for choice in choices if choice.kv == kind), None)
        if found is None:
            return ""
        if found.verdict is Verdict.CANNOT_RUN:
            return "  ·  " + tr("cannot run here")
        return (
            ("  ·  " + tr("up to {count}", count=formats.count(found.largest_context)))
            if found.largest_context
            else ("  ·  " + tr("no room"))
        )

    def speculation_kinds(self) -> tuple[str, ...]:
        """The kinds of speculation that this server of llama.cpp offers for what is started."""
        server = self.server()
        kinds = server.speculation if server else ()
        has_mtp = self.subject is not None and self.subject.drafts
        return tuple(
            kind
            for kind in kinds
            if SETTINGS["speculation"].spelled(kind) != OFF and (kind != "draft-mtp" or has_mtp)
        )


def choices_of(entry: EngineSetting, build: str, subject: Subject | None) -> tuple[Choice, ...]:
    """Return the choices of a setting of vLLM, for a build and a model."""
    if entry.name != "speculation":
        # Of a build that is not known yet those of GPUs are offered.
        of_build = {"": "cuda"}.get(build, build)
        return tuple((one.label, one.value) for one in entry.choices if one.build in ("", of_build))
    found: list[Choice] = [(tr("Off"), OFF)]
    if subject is not None and subject.drafts:
        found.append((tr("MTP: by the model itself"), "mtp"))
    found.append((tr("n-gram: drafts from the prompt"), "ngram"))
    if build == "cuda":
        found.append((tr("n-gram on the GPU"), "ngram_gpu"))
    return tuple(found)
