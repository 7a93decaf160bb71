"""Starts written down for others to carry out: presets on paper, and plans of this machine."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine_host.catalog.resolve import require
from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.deploy.build import deployment_of
from engine_host.deploy.deployment import Gpus, Overlay, Root
from engine_host.deploy.spec import DeploySpec, ModelSource, Patched
from engine_host.deploy.targets.render import NATIVE, render
from engine_host.engines.llamacpp.servers import ServerCapabilities
from engine_host.engines.vllm.pins import PINS
from engine_host.launch.dependencies import Environment
from engine_host.launch.ownership import foreign_settings
from engine_host.library.checkpoint import CheckpointInfo
from engine_host.library.gguf import GgufInfo
from engine_host.library.index import IndexedModel
from engine_host.operations.deploy_fit import DeployFit
from engine_host.operations.patches.plan import preset_properties
from engine_host.operations.performs import performs
from engine_host.operations.plans import PlanOperations
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.consents import PresetConsents
from engine_host.overlay.bundle import contents
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import Switches, select
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import PresetEngine, Task, Variant, WeightFile
from engine_host.protocol.engine_settings.table import Overrides, foreign_to
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.launch.deploy import Rendering, RenderRequest, RenderTarget
from engine_host.protocol.launch.plans import EngineKind, Finding, LaunchPlan, Layer, ServerChoice, Setting
from engine_host.protocol.operations import table as ops
from engine_host.protocol.patches import PatchChoice
from engine_host.protocol.presets import ResolvedPreset, ResolvePreset

# A preset that cannot start here for one of these can be written down nevertheless.
_NOT_HERE = {
    Reason.ENGINE_UNUSABLE,
    Reason.MODEL_FILE_MISSING,
    Reason.NOT_FOUND,
    Reason.UNSUPPORTED,
}
_CPU = "cpu"


@dataclass(frozen=True)
class DeployOperations:
    """Writes starts down; nothing is started, fetched or saved.

    `resources` is the folder of the files that ship with the program.
    """

    presets: PresetOperations
    plans: PlanOperations
    catalogue: Callable[[], PatchCatalog]
    switches: Callable[[], Switches]
    find_model: Callable[[str, Collection[str]], Awaitable[IndexedModel]]
    find_server: Callable[[ServerChoice], Awaitable[ServerCapabilities]]
    find_environment: Callable[[str | None], Awaitable[Environment]]
    gpus: Callable[[], Sequence[Gpu]]
    resources: Callable[[], Path]
    fit: DeployFit
    consents: PresetConsents

    @performs(ops.RENDER)
    async def render(self, asked: RenderRequest) -> Rendering:
        """A start written down for one target.

        Raises what planning a start raises, HostError(preset_conflict), HostError(unsupported) for what the
        target cannot hold, and the reason of the first error that a finding has, unless it is forced.
        HostError(consent_needed) for a preset from somebody else.
        """
        await self._check_consent(asked)
        wanted = await self.wanted(asked)
        if asked.gpus:
            _check_enough(asked.gpus, wanted)
        made = await asyncio.to_thread(lambda: render(deployment_of(wanted), asked.target))
        if not asked.force:
            _refuse_errors(made)
        return made

    async def described(
        self,
        asked: RenderRequest,
        *,
        elsewhere: bool,
        name: str | None = None,
    ) -> DeploySpec:
        """Return a start that is to be carried out: on this machine, or on another one with its own files.

        `name` is in the place of the preset's. Raises what `render` raises before it renders.
        """
        await self._check_consent(asked)
        if elsewhere:
            _check_named(asked.gpus, asked.count)
            wanted = await self._on_paper(asked, ())
        else:
            wanted = await self.wanted(asked)
        if asked.gpus:
            _check_enough(asked.gpus, wanted)
        # It is no engine of this host, so that neither a route here nor what this host starts is in its way.
        of_engines = {"route.takes_name", "render.not-here"}
        findings = tuple(one for one in wanted.findings if one.id not in of_engines)
        return replace(wanted, id=name or wanted.id, findings=findings)

    async def _check_consent(self, asked: RenderRequest) -> None:
        """Raise HostError(consent_needed): a start that is written down is the first one elsewhere."""
        preset = asked.launch.preset
        catalog = await self.presets.catalog()
        if preset is None or preset not in catalog.ids():
            return
        hardware = (await self.presets.machine_of(asked.hardware, asked.count)).hardware
        command = f"sndr render {shlex.quote(preset)} --target {asked.target.value}"
        needed = self.consents.to_start(catalog, preset, hardware)
        self.consents.check(needed, asked.consent, "writing it down", command)

    async def wanted(self, asked: RenderRequest) -> DeploySpec:
        """Return what is to be written down. Raises what planning a start raises, HostError(bad_request)."""
        _check_named(asked.gpus, asked.count)
        if asked.hardware is not None:
            return await self._on_paper(asked, ())
        return await self._of_this_machine(asked)

    async def _of_this_machine(self, asked: RenderRequest) -> DeploySpec:
        try:
            plan = await self.plans.plan(asked.launch)
        except HostError as error:
            if asked.launch.preset is None or error.reason not in _NOT_HERE:
                raise
            if error.reason is not Reason.ENGINE_UNUSABLE:
                asked = await self._with_gpus_of_here(asked, asked.launch.preset)
            return await self._on_paper(asked, (_not_here(error),))
        return await self._of_plan(asked, plan)

    async def _with_gpus_of_here(self, asked: RenderRequest, preset_id: str) -> RenderRequest:
        """The same for the GPUs of this machine, where there are enough of them."""
        seen = await asyncio.to_thread(self.gpus)
        needed = asked.count or (await self.presets.catalog()).preset(preset_id).needs.gpus
        if not needed or len(seen) < needed:
            return asked
        machine = await self.presets.machine_of(None, None)
        freest = sorted(seen, key=lambda gpu: -gpu.memory_free)[:needed]
        uuids = tuple(gpu.uuid for gpu in sorted(freest, key=lambda gpu: gpu.index))
        return asked.model_copy(
            update={"hardware": machine.hardware, "count": needed, "gpus": asked.gpus or uuids}
        )

    async def _of_plan(self, asked: RenderRequest, plan: LaunchPlan) -> DeploySpec:
        """Return what a plan says, with this machine's engine where no container brings one."""
        model = await self.find_model(plan.model_path, ())
        engine = PresetEngine(plan.engine)
        values = {one.name: one.value for one in plan.settings if not _of_this_processor(one, asked.target)}
        environment = await self.find_environment(plan.installation) if plan.installation else None
        server = await self.find_server(plan.server) if engine is PresetEngine.LLAMA_CPP else None
        native = asked.target in NATIVE
        patched = None
        if plan.patches is not None and plan.patches.chosen and environment is not None:
            catalogue = await asyncio.to_thread(self.catalogue)
            patched = patched_by([catalogue.get(one) for one in plan.patches.chosen], environment.version)
        seen = await asyncio.to_thread(self.gpus)
        preset = asked.launch.preset
        title = plan.name if preset is None else (await self.presets.catalog()).preset(preset).title
        return DeploySpec(
            id=preset or plan.name,
            title=title,
            alias=plan.name,
            engine=engine,
            values=values,
            gpus=_gpus_of(asked, plan, values, environment, server if native else None, seen),
            model=_shelved(model),
            native=native,
            patched=patched,
            version=environment.version if environment else None,
            python=environment.python if environment and native else None,
            server=server if native else None,
            port=asked.port,
            address=asked.address,
            findings=(*_of_the_start(plan.findings), *await self.fit.of_plan(plan)),
        )

    async def _on_paper(self, asked: RenderRequest, findings: Sequence[Finding]) -> DeploySpec:
        """Resolve a preset on hardware of the catalogue, without this machine's files and engines."""
        launch = asked.launch
        if launch.preset is None:
            raise HostError(
                Reason.BAD_REQUEST,
                "Only a preset can be written down for other hardware.",
                cause="A plan of a model is made for this machine.",
                fix="Name a preset, or leave the hardware out.",
                evidence={"model": launch.model, "hardware": asked.hardware},
            )
        needed = (await self.presets.catalog()).preset(launch.preset).needs.gpus
        question = ResolvePreset(
            preset=launch.preset,
            hardware=asked.hardware,
            count=asked.count or (max(needed, len(asked.gpus)) if asked.gpus else None),
            overrides=launch.overrides,
        )
        resolved, sm = await self.presets.resolved_on(question)
        _refuse_foreign(resolved, launch.overrides)
        require(resolved)
        patched = None
        if resolved.engine is PresetEngine.VLLM:
            choice = resolved.patches if launch.patches == PatchChoice() else launch.patches
            patched = await asyncio.to_thread(self._selected, resolved, sm, choice)
        source = source_of(resolved, self.resources())
        if launch.model:
            source = _shelved(await self.find_model(launch.model, ()))
        wanted = on_paper(resolved, source, patched)
        return replace(
            wanted,
            alias=launch.name or wanted.alias,
            gpus=Gpus(len(asked.gpus), asked.gpus) if asked.gpus else wanted.gpus,
            native=asked.target in NATIVE,
            port=asked.port,
            address=asked.address,
            findings=(*findings, *await self.fit.of_preset(resolved, launch.model)),
        )

    def _selected(self, resolved: ResolvedPreset, sm: str | None, choice: PatchChoice) -> Patched | None:
        found = select(self.catalogue(), preset_properties(resolved, sm), self.switches(), choice)
        return patched_by(found.chosen, PINS[0].version) if found.chosen else None


def _refuse_foreign(resolved: ResolvedPreset, given: Overrides) -> None:
    """Raise HostError(setting_invalid) for settings that a start on this engine would refuse."""
    said = given.model_dump(exclude_none=True, exclude_defaults=True)
    foreign = [name for name in foreign_to(resolved.engine) if name in said]
    if foreign:
        other = resolved.engine is PresetEngine.LLAMA_CPP
        raise foreign_settings(resolved.engine, EngineKind.VLLM if other else EngineKind.LLAMA_CPP, foreign)


def on_paper(resolved: ResolvedPreset, source: ModelSource, patched: Patched | None) -> DeploySpec:
    """A preset for a container on the hardware that it was resolved for."""
    needs = resolved.preset.needs
    return DeploySpec(
        id=resolved.preset.id,
        title=resolved.preset.title,
        alias=resolved.model.id,
        engine=resolved.engine,
        values={setting.name: setting.value for setting in resolved.settings},
        gpus=Gpus(max(resolved.count or 0, needs.gpus) if needs.gpus else 0),
        model=source,
        native=False,
        patched=patched,
        findings=resolved.findings,
    )


def source_of(resolved: ResolvedPreset, resources: Path) -> ModelSource:
    """Find a preset's model: among the files that ship with the program, or in a repository."""
    variant = resolved.model.variant(resolved.preset.variant)
    assert variant is not None  # The catalogue was checked.
    title, tasks = resolved.model.title, resolved.model.tasks
    if variant.bundled is not None:
        return ModelSource(title=title, path=resources / variant.bundled, size=variant.size, tasks=tasks)
    return ModelSource(
        title=title,
        repository=variant.repository,
        revision=variant.revision,
        files=_single_files(variant),
        size=variant.size,
        tasks=tasks,
    )


def _single_files(variant: Variant) -> tuple[WeightFile, ...]:
    """Files that are fetched one by one: of a GGUF repository only those of one quantisation are wanted."""
    return variant.files if variant.format == "gguf" else ()


def _shelved(model: IndexedModel) -> ModelSource:
    path, info = Path(model.file.path), model.info
    parts: tuple[Path, ...] = ()
    tokenizer = True
    tasks = (Task.EMBEDDING,) if getattr(info, "embedding_only", False) else ()
    if isinstance(info, GgufInfo):
        parts = tuple(map(Path, info.parts))
    elif isinstance(info, CheckpointInfo):
        path, tokenizer = info.path, info.tokenizer
    return ModelSource(
        title=model.file.name,
        path=path,
        parts=parts,
        size=model.file.size,
        tokenizer=tokenizer,
        tasks=tasks,
    )


def patched_by(patches: Sequence[LoadedPatch], version: str) -> Patched:
    """The overlay of these patches, in order, for one version of vLLM. Raises HostError(patch_invalid)."""
    made = contents(patches, version)
    placed = made.at(
        Path(Root.OVERLAY), Path(f"{Root.CACHE}/shadow"), Path(f"{Root.CACHE}/vllm/{made.digest}")
    )
    overlay = Overlay(
        made.digest,
        tuple(patch.id for patch in patches),
        {name: content.decode("utf-8") for name, content in made.files.items()},
    )
    return Patched(overlay, placed.arguments, placed.environment(Path(Root.LEDGER), in_own_venv=False))


def _gpus_of(
    asked: RenderRequest,
    plan: LaunchPlan,
    values: Mapping[str, Any],
    environment: Environment | None,
    server: ServerCapabilities | None,
    seen: Sequence[Gpu],
) -> Gpus:
    """The GPUs of a plan by UUID: those that it names, or as many as it needs."""
    if asked.gpus:
        return Gpus(len(asked.gpus), asked.gpus)
    if plan.gpus:
        return Gpus(len(plan.gpus), plan.gpus)
    if environment is not None and environment.build == _CPU:
        return Gpus(0)
    if server is not None and not server.devices:
        return Gpus(0)
    named = plan.environment.get("CUDA_VISIBLE_DEVICES", "")
    chosen = [gpu for gpu in seen if str(gpu.index) in named.split(",")] or list(seen)
    if environment is not None:
        chosen = chosen[: int(values.get("tensor_parallel") or 1)]
    return Gpus(len(chosen), tuple(gpu.uuid for gpu in chosen))


def _check_named(uuids: Sequence[str], count: int | None) -> None:
    """Raise HostError(bad_request) for a GPU that is named twice, or another number than was asked for."""
    if len(set(uuids)) < len(uuids):
        raise HostError(
            Reason.BAD_REQUEST,
            "A GPU is named twice.",
            fix="Name each one once with --gpu.",
            evidence={"gpus": list(uuids)},
        )
    if uuids and count is not None and count != len(uuids):
        named = tr("1 is named") if len(uuids) == 1 else tr("{count} are named", count=len(uuids))
        raise HostError(
            Reason.BAD_REQUEST,
            tr("{count} GPUs are asked for, and {named}.", count=count, named=named),
            cause="--count says how many there are, --gpu which ones.",
            fix="Name as many with --gpu as --count says, or leave --count out.",
            evidence={"count": count, "gpus": list(uuids)},
        )


def _check_enough(uuids: Sequence[str], wanted: DeploySpec) -> None:
    """Raise HostError(bad_request) when fewer GPUs are named than the engine spreads the model over."""
    needed = wanted.number("tensor_parallel", 1)
    if len(uuids) >= needed:
        return
    raise HostError(
        Reason.BAD_REQUEST,
        tr("The model is spread over {needed} GPUs, and {count} is named.", needed=needed, count=len(uuids)),
        cause=tr("Its setting tensor_parallel is {needed}.", needed=needed),
        fix="Name more with --gpu, or set tensor_parallel to as many as there are.",
        evidence={"tensor_parallel": needed, "gpus": list(uuids)},
    )


def _refuse_errors(made: Rendering) -> None:
    """Raise the first error that a rendering's findings have, with all of them as evidence."""
    errors = [one for one in made.findings if one.severity is Severity.ERROR]
    if not errors:
        return
    first = errors[0]
    fix = first.fix.text if first.fix is not None else tr("Change what it is about.")
    raise HostError(
        first.reason or Reason.UNSUPPORTED,
        tr("{made} was not written down. {message}", made=made.title, message=first.message),
        cause=" ".join(one.message for one in errors[1:]),
        fix=Fix(
            text=tr("{fix} --force writes it down nevertheless.", fix=fix),
            command=first.fix.command if first.fix is not None else None,
        ),
        evidence={"findings": [one.model_dump(mode="json") for one in made.findings]},
    )


def _not_here(error: HostError) -> Finding:
    problem = error.problem
    return finding(
        "render.not-here", reason=problem.reason, evidence=problem.evidence, problem=problem.message
    )


def _of_this_processor(setting: Setting, target: RenderTarget) -> bool:
    """Tell whether a setting comes from this machine's processor, which a cluster's node does not have."""
    of_here = setting.name == "threads" and setting.layer is Layer.HARDWARE
    return of_here and target is RenderTarget.KUBERNETES


def _of_the_start(findings: Iterable[Finding]) -> Iterator[Finding]:
    """A plan's findings that hold for what is written down: not those on our endpoint's port.

    What runs here now may be gone when it is carried out, so that it only warns.
    """
    for one in findings:
        if one.severity is Severity.INFO or one.reason is Reason.PORT_IN_USE:
            continue
        of_now = one.id in {"no_room_beside", "name_taken"}
        yield one.model_copy(update={"severity": Severity.WARNING}) if of_now else one
