"""The catalogue: every usable entry by id, and a fault for everything else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine_host.catalog.entries import Loaded
from engine_host.catalog.hardware_names import called
from engine_host.core.did_you_mean import near_names, same_numbers
from engine_host.core.errors import HostError
from engine_host.protocol.base import Severity
from engine_host.protocol.catalog import (
    Card,
    EngineEntry,
    HardwareEntry,
    ModelEntry,
    PresetEntry,
    PresetStatus,
    PresetVariation,
    ProfileEntry,
)
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.presets import CatalogFault, EntryOrigin


@dataclass(frozen=True)
class Catalog:
    """Entries by id; what is here fits together."""

    engines: Mapping[str, Loaded[EngineEntry]]
    hardware: Mapping[str, Loaded[HardwareEntry]]
    models: Mapping[str, Loaded[ModelEntry]]
    profiles: Mapping[str, Loaded[ProfileEntry]]
    presets: Mapping[str, Loaded[PresetEntry]]
    variations: Mapping[str, Loaded[PresetVariation]]
    faults: tuple[CatalogFault, ...] = ()

    def preset(self, preset_id: str) -> PresetEntry:
        """A preset as it holds, with the changes of a variation in it. Raises HostError(not_found)."""
        if (found := self.presets.get(preset_id)) is not None:
            return found.entry
        if (variation := self.variations.get(preset_id)) is not None:
            return varied(self.presets[variation.entry.extends].entry, variation.entry)
        raise missing("preset", preset_id, (*self.presets, *self.variations), "sndr presets list")

    def file(self, preset_id: str) -> Loaded[PresetEntry] | Loaded[PresetVariation]:
        """The file of a preset. Raises HostError(not_found)."""
        found = self.presets.get(preset_id) or self.variations.get(preset_id)
        if found is None:
            self.preset(preset_id)
            raise AssertionError("unreachable")
        return found

    def gpu(self, hardware_id: str) -> Loaded[HardwareEntry]:
        """Hardware by id, or by what people call it: `RTX 3090`, `3090`. Raises HostError(not_found)."""
        if (known := self.hardware.get(hardware_id)) is not None:
            return known
        found = called(hardware_id, {key: one.entry for key, one in self.hardware.items()})
        if len(found) != 1:
            raise _no_hardware(hardware_id, self.hardware, found)
        return self.hardware[found[0]]

    def files_of(self, preset_id: str, hardware: str | None) -> list[Loaded[Any]]:
        """Every file that a preset is resolved from. Raises HostError(not_found)."""
        preset, variation = self.preset(preset_id), self.variations.get(preset_id)
        files: list[Loaded[Any] | None] = [
            self.engines.get(preset.engine),
            self.hardware.get(hardware or ""),
            self.models[preset.model],
            self.profiles[preset.profile],
            self.presets[variation.entry.extends if variation else preset_id],
            variation,
        ]
        return [one for one in files if one is not None]

    def own(self) -> list[Loaded[Any]]:
        """Every usable file of a person's own."""
        kinds = (self.engines, self.hardware, self.models, self.profiles, self.presets, self.variations)
        return [one for kind in kinds for one in kind.values() if one.origin is EntryOrigin.USER]

    def ids(self) -> tuple[str, ...]:
        """Every preset's id, in order."""
        return tuple(sorted((*self.presets, *self.variations)))


def varied(base: PresetEntry, variation: PresetVariation) -> PresetEntry:
    """The preset that a variation makes of another one; measurements of the other do not hold for it."""
    changed = [name for name in ("variant", "profile", "patches") if getattr(variation, name) is not None]
    changed += sorted(variation.settings.model_fields_set)
    card = base.card
    if changed:
        caveat = (
            f"It differs from {base.id} in {', '.join(changed)}: what was measured there is not known here."
        )
        card = Card(
            status=PresetStatus.EXPERIMENTAL,
            caveats=(caveat, *card.caveats),
            audience=card.audience,
            good_for=card.good_for,
            do_not_use=card.do_not_use,
            fallback=base.id,
        )
    mine = {name: getattr(variation.settings, name) for name in variation.settings.model_fields_set}
    return base.model_copy(
        update={
            "id": variation.id,
            "settings": base.settings.model_copy(update=mine),
            "title": variation.title,
            "summary": variation.summary or _differently(base, variation),
            "variant": variation.variant or base.variant,
            "profile": variation.profile or base.profile,
            "patches": base.patches if variation.patches is None else variation.patches,
            "card": card,
        }
    )


def _differently(base: PresetEntry, variation: PresetVariation) -> str:
    """Describe a variation without a description of its own: the preset's id and its differences."""
    changed = [
        f"{name} {chosen}"
        for name in ("variant", "profile")
        if (chosen := getattr(variation, name)) not in {None, getattr(base, name)}
    ]
    changed += [
        f"{name} {_in_words(getattr(variation.settings, name))}"
        for name in type(variation.settings).model_fields
        if name in variation.settings.model_fields_set
    ]
    changed += ["other patches"] if variation.patches not in {None, base.patches} else []
    return f"{base.id}, with {', '.join(changed)}." if changed else base.summary


def _in_words(value: object) -> str:
    """A setting's value for people."""
    if value is None:
        return "as below it"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def missing(what: str, name: str, known: Iterable[str], command: str) -> HostError:
    """The error for an id that nothing has."""
    close = near_names(name, known)
    return HostError(
        Reason.NOT_FOUND,
        tr("There is no {what} {name}.", what=what, name=name),
        fix=Fix(
            text=tr("Did you mean {close}?", close=close[0]) if close else "See what there is.",
            command=command,
        ),
        evidence={what: name},
    )


def _no_hardware(name: str, known: Iterable[str], called_so: Sequence[str]) -> HostError:
    """The error for a GPU that is not in the catalogue, which another one does not stand for.

    `called_so` are several that differ in memory alone.
    """
    close = [*called_so] or near_names(name, (one for one in known if same_numbers(name, one)))[:1]
    names = " or ".join(close)
    meant = tr("Did you mean {close}?", close=names) if close else tr("See which GPUs are known.")
    return HostError(
        Reason.NOT_FOUND,
        tr("There is no hardware {name}.", name=name),
        cause="Cards of that name differ in memory." if called_so else "The catalogue has no such GPU.",
        fix=Fix(
            text=tr(
                "{meant} Of any other one `sndr fit MODEL --gpu GIB:TAKEN:GB/s` computes by its figures.",
                meant=meant,
            ),
            command="sndr presets hardware",
        ),
        evidence={"hardware": name},
    )


def errors(faults: Iterable[CatalogFault]) -> tuple[CatalogFault, ...]:
    """Those that keep a file out."""
    return tuple(fault for fault in faults if fault.severity is Severity.ERROR)
