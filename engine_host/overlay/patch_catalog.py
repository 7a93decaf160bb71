"""Every patch that could be applied: the built-in ones and the person's own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine_host.core.did_you_mean import near_names
from engine_host.core.errors import HostError
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_file import read_patch_file
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr
from engine_host.protocol.patches import (
    AppliesTo,
    Patch,
    PatchEvidence,
    PatchFault,
    PatchKind,
    PatchPage,
)

BUILT_IN = Path(__file__).parent / "patches"
ALL = "all"
# Patches of one folder; each may wait for every other.
_MOST = 400


@dataclass(frozen=True)
class PatchCatalog:
    """Patches in order of application; a folder that cannot be used is a fault, not the end of the others."""

    patches: Mapping[str, LoadedPatch]
    faults: tuple[PatchFault, ...] = ()
    families: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def load(cls, folders: Sequence[Path] = (BUILT_IN,)) -> "PatchCatalog":
        """Read the patch folders below some folders; an earlier folder wins over a later one.

        Raises HostError(patch_cycle).
        """
        found: dict[str, LoadedPatch] = {}
        faults: list[PatchFault] = []
        for place in folders:
            for number, folder in enumerate(_patch_folders(place), start=1):
                if number > _MOST:
                    faults.append(PatchFault(folder=str(place), problem=_too_many(place)))
                    break
                try:
                    patch = LoadedPatch(folder, read_patch_file(folder))
                    if patch.id in found:
                        raise _duplicate_id(patch, found[patch.id])
                except HostError as error:
                    faults.append(PatchFault(folder=str(folder), problem=error.problem))
                else:
                    found[patch.id] = patch
        faults += _unknown_requirements(found)
        ordered = {patch.id: patch for patch in in_order(found)}
        return cls(ordered, tuple(faults), frozenset(patch.file.family for patch in ordered.values()))

    def get(self, patch_id: str) -> LoadedPatch:
        """One patch. Raises HostError(patch_unknown), or what is wrong with the folder of this name."""
        if patch_id in self.patches:
            return self.patches[patch_id]
        raise self._unknown(patch_id)

    def named(self, name: str) -> frozenset[str]:
        """The patches that an id, a family (with those below it) or `all` means.

        Raises HostError(patch_unknown).
        """
        if name == ALL:
            return frozenset(self.patches)
        if name in self.patches:
            return frozenset({name})
        members = frozenset(
            patch.id
            for patch in self.patches.values()
            if patch.file.family == name or patch.file.family.startswith(f"{name}.")
        )
        if not members:
            raise self._unknown(name)
        return members

    def needed_by(self, patch_id: str) -> tuple[str, ...]:
        """The patches that would fall with this one, directly or through others."""
        fallen = {patch_id}
        for patch in self.patches.values():  # in order, so requirements come first
            if fallen & set(patch.file.requires):
                fallen.add(patch.id)
        return tuple(name for name in self.patches if name in fallen and name != patch_id)

    def page(self, seq: int, switches: "Mapping[str, tuple[bool, str]]") -> PatchPage:
        """The catalogue for the wire; `switches` says of each id whether it is on, and what decided."""
        return PatchPage(
            seq=seq,
            patches=tuple(describe(patch, *switches[patch.id]) for patch in self.patches.values()),
            faults=self.faults,
        )

    def _unknown(self, name: str) -> HostError:
        # Somebody who wrote a patch asks for it by its folder's name while the file is still wrong.
        for fault in self.faults:
            if Path(fault.folder).name == name:
                return HostError.from_problem(fault.problem)
        near = near_names(name, [*self.patches, *self.families], 3)
        return HostError(
            Reason.PATCH_UNKNOWN,
            tr("There is no patch or family {name}.", name=repr(name)),
            fix=Fix(
                text=tr("Did you mean {near}?", near=" or ".join(near)) if near else "See which there are.",
                command="sndr patches list",
            ),
            evidence={"name": name, "near": near},
        )


def describe(patch: LoadedPatch, on: bool, switched_by: str) -> Patch:
    """A patch for the wire."""
    file = patch.file
    kinds = [
        kind
        for kind, operations in (
            (PatchKind.HOOK, file.hook),
            (PatchKind.REBIND, file.rebind),
            (PatchKind.TEXT, file.text),
        )
        if operations
    ]
    return Patch(
        id=patch.id,
        title=file.title,
        family=file.family,
        kinds=tuple(kinds),
        problem=file.problem,
        upstream=(*file.upstream_issues, *file.upstream_prs),
        applies_to=AppliesTo(**file.applies_to.model_dump()),
        requires=file.requires,
        conflicts=file.conflicts,
        required=file.required,
        required_with_speculation=file.required_with_speculation,
        default=file.default,
        default_sm=file.default_sm,
        risk=file.risk,
        risk_note=file.risk_note,
        retire_when=file.retire_when,
        evidence=tuple(PatchEvidence(**one.model_dump()) for one in file.evidence),
        folder=str(patch.folder),
        switch="on" if on else "off",
        switched_by=switched_by,
    )


def in_order(patches: Mapping[str, LoadedPatch]) -> list[LoadedPatch]:
    """Requirements and predecessors first, otherwise by id.

    Raises HostError(patch_cycle) that names the patches of the cycle.
    """
    ordered: list[LoadedPatch] = []
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> None:
        if name in done or name not in patches:
            return
        if name in path:
            cycle = [*path[path.index(name) :], name]
            raise HostError(
                Reason.PATCH_CYCLE,
                tr("These patches wait for each other: {cycle}.", cycle=" → ".join(cycle)),
                cause="Their `requires` and `after` form a circle.",
                fix="Take one of these out of the other's patch.toml.",
                evidence={"cycle": cycle},
            )
        path.append(name)
        file = patches[name].file
        for before in sorted({*file.requires, *file.after}):
            visit(before)
        path.pop()
        done.add(name)
        ordered.append(patches[name])

    for name in sorted(patches):
        visit(name)
    return ordered


def _patch_folders(place: Path) -> Iterable[Path]:
    try:
        children = sorted(place.iterdir())
    except OSError:
        return ()  # A person without patches of their own has no such folder.
    return (child for child in children if _exists(child / "patch.toml"))


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # Reading it says what is wrong with it.
    return True


def _too_many(place: Path) -> Problem:
    return Problem(
        reason=Reason.PATCH_INVALID,
        message=tr(
            "{place} holds more than {most} patches; the others are left out.", place=place, most=_MOST
        ),
        fix=Fix(text="Move those that are not needed to another folder."),
        evidence={"folder": str(place)},
    )


def _duplicate_id(patch: LoadedPatch, first: LoadedPatch) -> HostError:
    return HostError(
        Reason.PATCH_INVALID,
        tr("{folder} has the id of another patch: {patch}.", folder=patch.folder, patch=patch.id),
        cause=tr("{folder} has it already.", folder=first.folder),
        fix="Give the patch an id of its own.",
        evidence={"folder": str(patch.folder), "first": str(first.folder)},
    )


def _unknown_requirements(found: dict[str, LoadedPatch]) -> list[PatchFault]:
    """Takes patches out that require what is not there, and those that require them."""
    faults: list[PatchFault] = []
    while True:
        missing = {
            patch.id: next(name for name in patch.file.requires if name not in found)
            for patch in found.values()
            if any(name not in found for name in patch.file.requires)
        }
        if not missing:
            return faults
        for name, required in missing.items():
            patch = found.pop(name)
            problem = Problem(
                reason=Reason.PATCH_INVALID,
                message=tr(
                    "{folder} requires {required}, which there is not.",
                    folder=patch.folder / "patch.toml",
                    required=required,
                ),
                fix=Fix(text="Correct `requires`, or fix the other patch."),
                evidence={"file": str(patch.folder / "patch.toml"), "key": "requires"},
            )
            faults.append(PatchFault(folder=str(patch.folder), problem=problem))
