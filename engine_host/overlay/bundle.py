"""Writes a bundle: everything that the overlay needs inside an engine's processes, named by its content."""

import contextlib
import hashlib
import json
import math
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.core.likely_causes import unreadable_file
from engine_host.core.outside import files as outside_files
from engine_host.engines.temporary_folder import HEADERS
from engine_host.engines.vllm.command import KERNELS
from engine_host.overlay.loaded_patch import LoadedPatch
from engine_host.overlay.patch_file import Hook, Rebind, TextEdit
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

_LARGEST = 8 << 20

FORMAT = 1
INJECT = Path(__file__).parent / "inject"
PTH_NAME = "sndr_overlay.pth"
# One line, run by `site` in every interpreter of the venv; without the variable it does nothing.
PTH_LINE = (
    "import os, sys; _b = os.environ.get('SNDR_OVERLAY'); "
    "_b and (_b in sys.path or sys.path.append(_b), __import__('sndr_overlay.start'))\n"
)
_SITECUSTOMIZE = '''"""Starts the overlay in an environment that is not ours, then the one that we hide."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if os.environ.get("SNDR_OVERLAY"):
    import sndr_overlay.start
_others = [_path for _path in sys.path if os.path.abspath(_path or ".") != _here]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _module = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_module)
'''
_NEVER_COPIED = {"__pycache__"}
# Model classes lie below the second in vLLM 0.32 and later (the new-style model definitions).
_MODELS = ("vllm.model_executor.models", "vllm.models")
# vLLM runs these before it looks at model classes, and they may register others (registry.py there).
_RUN_BY_PLUGIN = {"general_plugins", "kernels"}


@dataclass(frozen=True)
class Bundle:
    """A bundle on disk; `cache_root` is vLLM's own cache for this set of patches."""

    folder: Path
    digest: str
    shadows: Path
    cache_root: Path
    middleware: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()

    def environment(self, ledger: Path, *, in_own_venv: bool) -> dict[str, str]:
        """The variables of a start; `in_own_venv`: the `.pth` line is there, PYTHONPATH is not needed."""
        variables = {
            "SNDR_OVERLAY": str(self.folder),
            "SNDR_OVERLAY_LEDGER": str(ledger),
            "SNDR_OVERLAY_SHADOW": str(self.shadows),
            "VLLM_CACHE_ROOT": str(self.cache_root),
        }
        if not in_own_venv:
            variables["PYTHONPATH"] = str(self.folder)
        if self.plugins:
            # vLLM loads endpoint plug-ins only when they are named, and then nothing that is not.
            variables["VLLM_PLUGINS"] = ",".join(("sndr", *self.plugins))
        return variables

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments for the command line: the salt of the compile cache, and middleware by name."""
        words = ["--additional-config", json.dumps({"sndr_patches": self.digest})]
        for name in self.middleware:
            words += ["--middleware", name]
        return tuple(words)


@dataclass(frozen=True)
class Contents:
    """The contents of a bundle: files by their path in it, and the hooks that a start names."""

    digest: str
    files: dict[str, bytes]
    middleware: tuple[str, ...]
    plugins: tuple[str, ...]
    model_infos: str

    def at(self, folder: Path, shadows: Path, cache_root: Path) -> Bundle:
        """The bundle in a folder; nothing is written."""
        return Bundle(folder, self.digest, shadows, cache_root, self.middleware, self.plugins)


def contents(patches: Sequence[LoadedPatch], vllm: str) -> Contents:
    """The bundle of these patches, in order, for one version of vLLM. Raises HostError(patch_invalid)."""
    version = Version(vllm).base_version
    specs = [_spec(patch, version) for patch in patches]
    files = _files(patches, specs)
    digest = _digest(version, specs, files)
    manifest = {"format": FORMAT, "vllm": version, "digest": digest, "patches": specs}
    files["manifest.json"] = json.dumps(manifest, indent=1).encode()
    hooks = [(spec["id"], hook) for spec in specs for hook in spec["hooks"]]
    return Contents(
        digest,
        files,
        tuple(
            f"sndr_overlay.middleware.{_hook_name(patch, hook)}"
            for patch, hook in hooks
            if hook["point"] == "middleware"
        ),
        tuple(f"sndr-{patch}" for patch, hook in hooks if hook["point"] == "endpoint_plugins"),
        _model_infos(version, specs, files),
    )


def write_bundle(patches: Sequence[LoadedPatch], vllm: str, cache: Path) -> Bundle:
    """Write the bundle of these patches, in this order, for one version of vLLM; an existing one is used.

    Raises HostError(disk_full), HostError(not_writable), HostError(patch_invalid).
    """
    bundled = contents(patches, vllm)
    folder = cache / "overlay" / bundled.digest
    if not _is_whole(folder, bundled.files):
        _write(folder, bundled.files)
    else:
        os.utime(folder)
    _share(cache / "vllm", bundled)
    return bundled.at(folder, cache / "overlay" / "shadow", cache / "vllm" / bundled.digest)


def _model_infos(version: str, specs: Sequence[dict[str, Any]], files: dict[str, bytes]) -> str:
    """Return the folder's name for what vLLM finds out of its model classes under these patches.

    vLLM imports itself in a process of its own for each architecture that it has not yet looked at
    (model_executor/models/registry.py), which takes as long as a third of a start. Only patches of the models
    and plug-ins change what it sees, so all other sets share the results.
    """
    touching = [
        spec
        for spec in specs
        if any(one["module"].startswith(_MODELS) for one in (*spec["text"], *spec["rebind"]))
        or any(hook["point"] in _RUN_BY_PLUGIN for hook in spec["hooks"])
    ]
    name = f"modelinfos-{version}"
    if not touching:
        return name
    folders = tuple(f"sndr_overlay_patches/{spec['id'].replace('-', '_')}/" for spec in touching)
    code = {path: content for path, content in files.items() if path.startswith(folders)}
    return f"{name}-{_digest(version, touching, code)}"


def _share(caches: Path, bundled: Contents) -> None:
    """Link a bundle's own cache to the shared folders; where links cannot be made, vLLM looks anew."""
    own = caches / bundled.digest
    for name, shared in ((HEADERS, HEADERS), ("modelinfos", bundled.model_infos)):
        with contextlib.suppress(OSError):
            (caches / shared).mkdir(parents=True, exist_ok=True)
            own.mkdir(exist_ok=True)
            (own / name).symlink_to(Path("..") / shared)


def install_pth(site_packages: Path) -> None:
    """Put the overlay's line into a venv of ours. Raises HostError(not_writable), HostError(disk_full)."""
    atomic_file.write(site_packages / PTH_NAME, PTH_LINE)


def prune(cache: Path, in_use: Collection[str], keep: int = 20) -> None:
    """Remove bundles with their compile caches that were not used for a week, but for the newest `keep`.

    Those of the digests in use stay whatever their age, and a week is for hosts that share the cache. Shadow
    files are small and may be in use by an engine of any age: those not used for a month go, and so do the
    headers and kernels that earlier ones of PyTorch and Triton made. What cannot be removed stays, without an
    error: the next host tries again.
    """
    overlay = cache / "overlay"
    bundles = [path.parent for path in overlay.glob("*/manifest.json")]
    for folder in sorted(bundles, key=_used, reverse=True)[keep:]:
        if folder.name not in in_use and _unused_for(folder, 7):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(cache / "vllm" / folder.name, ignore_errors=True)
    for pattern, days in (("shadow/*", 30), (".*", 1)):
        for folder in overlay.glob(pattern):
            if _unused_for(folder, days):
                shutil.rmtree(folder, ignore_errors=True)
    for file in (cache / "vllm" / HEADERS).glob("*/*"):
        if _unused_for(file, 30):
            with contextlib.suppress(OSError):
                file.unlink()
    # A kernel's files go together: where one is missing Triton does not make the others anew.
    for folder in (cache / "vllm" / KERNELS).glob("*"):
        if all(_unused_for(path, 30) for path in (folder, *folder.glob("*"))):
            shutil.rmtree(folder, ignore_errors=True)


def _unused_for(path: Path, days: int) -> bool:
    return _used(path) < time.time() - days * 86_400


def _used(path: Path) -> float:
    """When a folder or file was last used; one that is gone meanwhile counts as new."""
    try:
        # A header is only ever read again; who looks at a folder reads it, too.
        found = path.stat()
        return found.st_mtime if stat.S_ISDIR(found.st_mode) else max(found.st_mtime, found.st_atime)
    except OSError:
        return math.inf


def _for_version(operations: Sequence[Any], version: str) -> list[Any]:
    return [
        one
        for one in operations
        if one.vllm is None or SpecifierSet(one.vllm).contains(version, prereleases=True)
    ]


def _spec(patch: LoadedPatch, version: str) -> dict[str, Any]:
    file = patch.file
    texts: list[TextEdit] = _for_version(file.text, version)
    rebinds: list[Rebind] = _for_version(file.rebind, version)
    hooks: list[Hook] = _for_version(file.hook, version)
    return {
        "id": patch.id,
        "requires": list(file.requires),
        "text": [edit.model_dump(include={"module", "find", "replace", "count"}) for edit in texts],
        "rebind": [
            rebind.model_dump(include={"module", "target", "replacement", "signature"}) for rebind in rebinds
        ],
        "hooks": [hook.model_dump(include={"point", "function"}) for hook in hooks],
        "merged": file.upstream_merged.model_dump() if file.upstream_merged else None,
        "probe": file.probe.model_dump(mode="json"),
    }


def _hook_name(patch: str, hook: dict[str, Any]) -> str:
    return f"{patch.replace('-', '_')}__{hook['function'].replace(':', '__')}"


def _files(patches: Sequence[LoadedPatch], specs: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    """Everything in a bundle but its manifest, by its path there."""
    files = {f"sndr_overlay/{path.name}": path.read_bytes() for path in sorted(INJECT.glob("*.py"))}
    targets = sorted({one["module"] for spec in specs for one in (*spec["text"], *spec["rebind"])})
    listed = "".join(f"        {target!r},\n" for target in targets)
    files["sndr_overlay/targets.py"] = (
        '"""The modules that this bundle\'s patches touch."""\n\n'
        f"TARGETS = frozenset(\n    {{\n{listed}    }}\n)\n".replace("{\n    }", "set()")
    ).encode()
    files["sitecustomize.py"] = _SITECUSTOMIZE.encode()
    files["sndr_overlay-1.dist-info/METADATA"] = b"Metadata-Version: 2.1\nName: sndr-overlay\nVersion: 1\n"
    files["sndr_overlay-1.dist-info/entry_points.txt"] = _entry_points(specs).encode()
    files["sndr_overlay_patches/__init__.py"] = b'"""The code of this bundle\'s patches."""\n'
    for patch in patches:
        folder = f"sndr_overlay_patches/{patch.id.replace('-', '_')}"
        files[f"{folder}/__init__.py"] = b""
        files |= _patch_files(patch, folder)
    return files


def _patch_files(patch: LoadedPatch, folder: str) -> dict[str, bytes]:
    try:
        return {
            f"{folder}/{path.relative_to(patch.folder).as_posix()}": outside_files.read(path, _LARGEST)
            for path in sorted(patch.folder.rglob("*.py"))
            if not path.name.startswith("test_") and not _NEVER_COPIED & set(path.parts)
        }
    except OSError as error:
        raise HostError(
            Reason.PATCH_INVALID,
            tr("A file of the patch {patch} cannot be read: {error}.", patch=patch.id, error=error.strerror),
            cause=unreadable_file(),
            fix="Correct the file, or switch the patch off.",
            evidence={"folder": str(patch.folder), "errno": error.errno},
        ) from error


def _entry_points(specs: Sequence[dict[str, Any]]) -> str:
    hooks = [(spec["id"], hook) for spec in specs for hook in spec["hooks"]]
    lines: list[str] = []
    if any(hook["point"] in _RUN_BY_PLUGIN for _, hook in hooks):
        lines += ["[vllm.general_plugins]", "sndr = sndr_overlay.hooks:register"]
    endpoints = [(patch, hook) for patch, hook in hooks if hook["point"] == "endpoint_plugins"]
    if endpoints:
        lines.append("[vllm.endpoint_plugins]")
        lines += [
            f"sndr-{patch} = sndr_overlay.endpoints:{_hook_name(patch, hook)}" for patch, hook in endpoints
        ]
    return "\n".join(lines) + "\n"


def _digest(version: str, specs: Sequence[dict[str, Any]], files: dict[str, bytes]) -> str:
    hasher = hashlib.sha256(json.dumps([FORMAT, version, specs], sort_keys=True).encode())
    for name, content in sorted(files.items()):
        hasher.update(f"{name}\0{len(content)}\0".encode())
        hasher.update(content)
    return hasher.hexdigest()[:16]


def _is_whole(folder: Path, files: dict[str, bytes]) -> bool:
    """Return True if all files are there as written: caches are cleaned by hand and by other programs."""
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Write beside and rename: whoever sees the folder sees all of it."""
    part: Path | None = None
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        for name, content in files.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            part.rename(folder)
        except OSError:
            # Another start finished the same bundle first, or something took parts of it away.
            if not _is_whole(folder, files):
                shutil.rmtree(folder, ignore_errors=True)
                part.rename(folder)
    except OSError as error:
        raise atomic_file.saving_failed(folder, error) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
