"""The versions of vLLM that this program installs, and what each needs; sizes in bytes."""

from dataclasses import dataclass
from pathlib import Path

from engine_host.protocol.errors import Action, Fix

LOCKS = Path(__file__).parent / "locks"
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Pin:
    """One environment that can be installed; measured sizes of the finished folder and of its downloads.

    `cuda`, `driver` and `sm` are what its kernels are made with and the least that they run on: the CUDA
    runtime of the lock, NVIDIA's table of CUDA 13.0, and the least architecture in vLLM's own libraries.
    """

    version: str
    build: str
    size: int
    download: int
    needs_free: int
    packages_first: tuple[str, ...] = ()
    cuda: str = "13.0"
    driver: str = "580.65"
    sm: str = "7.5"

    @property
    def id(self) -> str:
        """Version and build, also the folder's name."""
        return f"{self.version}-{self.build}"

    @property
    def lock(self) -> Path:
        """Every other package, with hashes."""
        return LOCKS / f"{self.id}.lock"

    @property
    def lock_first(self) -> Path:
        """The packages that come first, with hashes."""
        return LOCKS / f"{self.id}.torch.lock"


# The first of a build is the current one. torch for the CPU is not on PyPI: PyTorch's own index has it, and
# a folder of wheels that pip is set up with may have it. Its lock holds the hash of PyTorch's own file.
PINS = (
    Pin("0.32.0", "cuda", round(8.0 * _GIB), round(3.7 * _GIB), 12 * _GIB),
    Pin("0.26.0", "cuda", round(7.6 * _GIB), round(3.64 * _GIB), 12 * _GIB),
    Pin("0.32.0", "cpu", round(2.1 * _GIB), round(0.6 * _GIB), 5 * _GIB, ("torch==2.13.0+cpu",)),
)
# The locks are resolved for this one: vLLM bounds setuptools from 3.12 on, and 3.13 lacks wheels of CUDA.
PYTHON = "3.11"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def current(build: str, version: str = "") -> Pin:
    """The pin of a build: of this version where there is one, else the current one."""
    of_build = [pin for pin in PINS if pin.build == build]
    return next((pin for pin in of_build if pin.version == version), of_build[0])


def install_fix(pin: Pin, text: str) -> Fix:
    """The next action that installs a pin, as a click and as a command."""
    return Fix(
        text=text,
        command=f"sndr engine install vllm --version {pin.version} --build {pin.build}",
        action=Action(method="POST", path=f"/v1/installations/{pin.id}"),
    )
