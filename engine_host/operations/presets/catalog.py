"""The catalogue of presets, and what each of them resolves to."""

import asyncio
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from engine_host.catalog.index import Catalog
from engine_host.catalog.needs import card_seen
from engine_host.catalog.reader import Place, Reader
from engine_host.catalog.recognise import recognise
from engine_host.catalog.resolve import TargetHardware, UserValues, resolve
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.settings import SettingsFile
from engine_host.operations.performs import performs
from engine_host.protocol.catalog import Id, PresetEngine, PresetEntry, PresetVariation
from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.host import Gpu
from engine_host.protocol.language import tr
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import (
    CatalogPage,
    EntryOrigin,
    PresetDetail,
    PresetForm,
    PresetItem,
    PresetPage,
    ResolvedPreset,
    ResolvePreset,
)

# Asks for the GPUs of this machine.
HERE = "here"
_STARTED = {PresetEngine.LLAMA_CPP, PresetEngine.VLLM}
# Settings of every start that a person can set for good, by their names in a preset.
_OF_THE_USER = {name: f"engine.{name}" for name in ("context", "streams", "threads")}
_ID: TypeAdapter[str] = TypeAdapter(Id)


class PresetOperations:
    """The catalogue as the window and the command line see it; changed files are read anew."""

    def __init__(
        self,
        shipped: Callable[[], Path],
        own: Path,
        settings: SettingsFile,
        events: EventLog,
        gpus: Callable[[], Sequence[Gpu]],
    ) -> None:
        self._shipped = shipped
        self._gpus = gpus
        self.own = Place(own, EntryOrigin.USER, str(own))
        self.events = events
        self._settings = settings
        self._reader: Reader | None = None

    async def catalog(self) -> Catalog:
        """The catalogue as it is now. Raises HostError(not_found) when the installation is incomplete."""
        if self._reader is None:
            shipped = Place(self._shipped(), EntryOrigin.PROGRAM, "presets")
            self._reader = Reader((shipped, self.own))
        return await asyncio.to_thread(self._reader.read)

    @performs(ops.PRESETS)
    async def page(self) -> PresetPage:
        """Every preset, and what is wrong in files."""
        catalog = await self.catalog()
        items = tuple(_item(catalog, name) for name in catalog.ids())
        return PresetPage(seq=self.events.seq, presets=items, faults=catalog.faults)

    @performs(ops.CATALOG)
    async def entries(self) -> CatalogPage:
        """Models, hardware, profiles and engines."""
        catalog = await self.catalog()
        return CatalogPage(
            seq=self.events.seq,
            here=recognise(catalog, await asyncio.to_thread(self._gpus)),
            models=tuple(one.entry for _, one in sorted(catalog.models.items())),
            hardware=tuple(one.entry for _, one in sorted(catalog.hardware.items())),
            profiles=tuple(one.entry for _, one in sorted(catalog.profiles.items())),
            engines=tuple(one.entry for _, one in sorted(catalog.engines.items())),
            faults=catalog.faults,
        )

    @performs(ops.PRESET_FORM)
    async def form(self) -> PresetForm:
        """JSON Schemas for editing a preset."""
        return _form()

    @performs(ops.PRESET)
    async def detail(self, preset_id: str) -> PresetDetail:
        """One preset with its file. Raises HostError(not_found)."""
        catalog = await self.catalog()
        item, file = _item(catalog, preset_id), catalog.file(preset_id)
        variation = catalog.variations.get(preset_id)
        return PresetDetail(
            seq=self.events.seq,
            item=item,
            text=file.document.text,
            model=catalog.models[item.preset.model].entry,
            profile=catalog.profiles[item.preset.profile].entry,
            base=catalog.presets[variation.entry.extends].entry if variation else None,
            variation=variation.entry if variation else None,
            resolved=resolve(catalog, preset_id, user=self._user()),
        )

    @performs(ops.RESOLVE_PRESET)
    async def resolve(self, asked: ResolvePreset) -> ResolvedPreset:
        """Resolve a preset on some hardware.

        Raises HostError(not_found), HostError(bad_request) for more GPUs of this machine than it has.
        """
        catalog = await self.catalog()
        machine = None
        if asked.hardware == HERE:
            machine = await self.here(asked.count)
        elif asked.hardware is not None:
            count = asked.count or max(1, catalog.preset(asked.preset).needs.gpus)
            machine = TargetHardware(asked.hardware, count)
        found = resolve(catalog, asked.preset, machine, self._user(), asked.overrides)
        return found.model_copy(update={"seq": self.events.seq})

    async def resolve_for(
        self, preset_id: str, machine: TargetHardware | None, overrides: Overrides | None = None
    ) -> ResolvedPreset:
        """Resolve a preset on a machine; every start and every verdict is made from this.

        Raises HostError(not_found).
        """
        return self.resolve_in(await self.catalog(), preset_id, machine, overrides)

    def resolve_in(
        self,
        catalog: Catalog,
        preset_id: str,
        machine: TargetHardware | None,
        overrides: Overrides | None = None,
    ) -> ResolvedPreset:
        """The same in a catalogue that was read before. Raises HostError(not_found)."""
        return resolve(catalog, preset_id, machine, self._user(), overrides)

    async def known(self, preset_id: str) -> bool:
        """Tell whether there is such a preset."""
        return preset_id in (await self.catalog()).ids()

    async def machine_of(self, hardware: str | None, count: int | None) -> TargetHardware:
        """The GPUs that are meant: of the catalogue, or without a name those of this machine.

        Also of a kind that the catalogue does not know. Raises HostError(not_found) for unknown hardware.
        """
        catalog = await self.catalog()
        if hardware is not None and hardware != HERE:
            return TargetHardware(catalog.gpu(hardware).entry.id, count or 1)
        gpus = await asyncio.to_thread(self._gpus)
        found = recognise(catalog, gpus)
        if found is None:
            return TargetHardware(None, 0)
        there = found.count if count is None else min(count, found.count)
        if found.hardware is not None:
            return TargetHardware(found.hardware, there)
        return TargetHardware(None, there, card_seen(next(gpu for gpu in gpus if gpu.name == found.name)))

    async def here(self, count: int | None) -> TargetHardware:
        """This machine, with GPUs or without; of its GPUs `count`, where that is asked.

        Raises HostError(bad_request) when it has fewer.
        """
        found = await self.machine_of(None, count)
        if count is None or count == found.count:
            return found
        there = {0: "no GPU", 1: "one GPU"}.get(found.count, f"{found.count} GPUs")
        raise HostError(
            Reason.BAD_REQUEST,
            tr("This machine has {there}; a count of {count} was asked for.", there=there, count=count),
            fix=Fix(text="Name the hardware that is meant.", command="sndr presets hardware"),
            evidence={"field": "count", "here": found.count},
        )

    async def resolved_on(self, asked: ResolvePreset) -> tuple[ResolvedPreset, str | None]:
        """The same with the compute capability of its GPUs; without hardware, of those it is known to run on.

        Raises HostError(not_found).
        """
        catalog = await self.catalog()
        known = catalog.preset(asked.preset).needs.known_good
        if asked.hardware is None and known:
            asked = asked.model_copy(update={"hardware": known[0]})
        found = await self.resolve(asked)
        if found.hardware is None and asked.hardware == HERE:
            card = (await self.machine_of(None, None)).card
            return found, None if card is None else card.sm
        return found, None if found.hardware is None else catalog.gpu(found.hardware).entry.sm

    def _user(self) -> UserValues:
        set_ones = {name: key for name, key in _OF_THE_USER.items() if self._settings.is_set(key)}
        engine = self._settings.current.engine
        values = {name: getattr(engine, name) for name in set_ones}
        return UserValues(str(self._settings.path), values, set_ones)


def _item(catalog: Catalog, preset_id: str) -> PresetItem:
    preset, file = catalog.preset(preset_id), catalog.file(preset_id)
    model = catalog.models[preset.model].entry
    variant = model.variant(preset.variant)
    return PresetItem(
        preset=preset,
        origin=file.origin,
        file=file.file,
        digest=file.digest,
        extends=file.entry.extends if isinstance(file.entry, PresetVariation) else None,
        model_title=model.title,
        family=model.family,
        tasks=model.tasks,
        size=variant.size if variant else None,
        startable=preset.engine in _STARTED,
    )


@functools.cache
def _form() -> PresetForm:
    """Return the schemas, which are the same for as long as the program runs; making them takes 0.1 s."""
    return PresetForm(
        preset=PresetEntry.model_json_schema(),
        variation=PresetVariation.model_json_schema(),
        settings=Overrides.model_json_schema(),
    )
