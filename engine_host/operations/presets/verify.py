"""A check that a preset's files are byte for byte those of the catalogue: hashed by a job, remembered."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from engine_host.core.errors import HostError
from engine_host.core.findings.table import finding
from engine_host.core.jobs import JobControl, JobRunner
from engine_host.core.store import Store
from engine_host.library.file_hashes import FileHashes, Hashes, hash_file
from engine_host.library.of_catalog import file_at
from engine_host.operations.performs import performs
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.operations.presets.weights import chosen, fetch, weights_of
from engine_host.protocol.catalog import WeightFile
from engine_host.protocol.errors import Fix, Reason
from engine_host.protocol.jobs import Job, JobKind
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.models import ModelFile
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import CheckedFile, CheckedFiles, ResolvedPreset


class PresetVerifyOperations:
    """Hashes the files of presets, and remembers it as long as a file is not written to."""

    def __init__(
        self,
        jobs: JobRunner,
        store: Store,
        presets: PresetOperations,
        list_models: Callable[[bool], Awaitable[Sequence[ModelFile]]],
    ) -> None:
        self._jobs = jobs
        self._hashes = FileHashes(store)
        self._presets = presets
        self._list_models = list_models

    @performs(ops.VERIFY_PRESET)
    async def verify(self, preset_id: str) -> Job:
        """Hash the files of a preset as a job whose result is a CheckedFiles.

        Raises HostError: not_found, why its files cannot be chosen, unsupported when the catalogue knows no
        hash of them.
        """
        resolved = await self._presets.resolve_for(preset_id, None)
        model = chosen(resolved, await self._list_models(False))
        variant = weights_of(resolved)
        wanted = [(file, file_at(variant, file, model)) for file in variant.files if file.sha256 is not None]
        if not wanted:
            raise HostError(
                Reason.UNSUPPORTED,
                tr(
                    "The catalogue knows no hash of {model} ({quantization}).",
                    model=resolved.model.title,
                    quantization=variant.quantization,
                ),
                cause="Nobody has looked it up; a size is all that can be compared.",
                fix=Fix(text="See what it has.", command=f"sndr presets show {preset_id}"),
                evidence={"preset": preset_id, "model": model.path},
            )
        return self._jobs.start(
            JobKind.PRESET_VERIFY,
            tr("Verify the files of {preset_id}", preset_id=preset_id),
            f"files of {model.path}",
            f"sndr presets verify {preset_id}",
            lambda control: self._hash(control, preset_id, model, wanted),
        )

    def finding(self, resolved: ResolvedPreset, model: ModelFile) -> Finding | None:
        """Return what is known of the hashes of a model's files: wrong ones stop a start.

        Looks at the disk, at times of change alone. Raises HostError when the database cannot be used.
        """
        variant = weights_of(resolved)
        unknown = []
        for file in variant.files:
            if file.sha256 is None:
                continue
            path = file_at(variant, file, model)
            known = self._hashes.known(path)
            if known is None:
                unknown.append(file.name)
            elif known.sha256 != file.sha256:
                return finding(
                    "weights.hash",
                    fix=fetch(resolved),
                    path=str(path),
                    sha256=known.sha256,
                    expected=file.sha256,
                )
        # What ships with the program came with it whole.
        if not unknown or variant.bundled is not None:
            return None
        return finding("weights.not_verified", files=unknown, preset=resolved.preset.id)

    async def _hash(
        self,
        control: JobControl,
        preset_id: str,
        model: ModelFile,
        wanted: Sequence[tuple[WeightFile, Path]],
    ) -> dict[str, Any]:
        loop, stopped = asyncio.get_running_loop(), threading.Event()
        found = []
        try:
            for number, (file, path) in enumerate(wanted, start=1):

                def tell(share: float, number: int = number, name: str = file.name) -> None:
                    loop.call_soon_threadsafe(control.step, number, len(wanted), name, "", share)

                control.step(number, len(wanted), file.name)
                checked, hashes = await asyncio.to_thread(_checked, file, path, tell, stopped.is_set)
                found.append(checked)
                if hashes is not None:
                    self._hashes.remember(path, hashes)
        finally:
            stopped.set()
        result = CheckedFiles(preset=preset_id, model=model.path, files=tuple(found))
        return result.model_dump(mode="json")


def _checked(
    file: WeightFile, path: Path, tell: Callable[[float], None], stopped: Callable[[], bool]
) -> tuple[CheckedFile, Hashes | None]:
    """Hash one file; blocks."""
    known = CheckedFile(name=file.name, path=str(path), expected=file.sha256 or "")
    try:
        size = max(path.stat().st_size, 1)
        hashes = hash_file(path, lambda done: tell(done / size), stopped)
    except OSError as error:
        return known.model_copy(update={"problem": str(error.strerror or error)}), None
    return known.model_copy(update={"sha256": hashes.sha256 if hashes else None}), hashes
