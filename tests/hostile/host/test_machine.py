"""What the machine tells of itself: the driver's words, names of processes, variables, folders of models."""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from engine_host.core.paths import Folders
from engine_host.engines.vllm.package_sources import package_sources
from engine_host.library.hub.configs import Hub
from engine_host.library.index import ModelIndex
from engine_host.library.scan import Place, find_models, other_programs
from engine_host.protocol.host import Gpu
from engine_host.protocol.models import ModelOrigin, ModelPage
from engine_host.telemetry.gpus import Gpus
from sndr_gui.kit import display
from tests.hostile.effort import clear, fuzz
from tests.hostile.making.text import file_names, long_words, words
from tests.hostile.making.values import NUMBERS, numbers
from tests.unit.asynchronous import run
from tests.unit.library.checkpoints import CONFIG
from tests.unit.telemetry.test_gpus import FakeNvml, NVMLError

pytestmark = pytest.mark.fuzz
_odd: st.SearchStrategy[Any] = st.one_of(
    words,
    words.map(lambda word: word.encode("utf-8", "replace")),
    st.binary(max_size=20),
    st.sampled_from([None, *NUMBERS, [], {}, object(), (8,), ("a", "b")]),
    st.builds(lambda total, used: SimpleNamespace(total=total, used=used, gpu=used), numbers, numbers),
    st.builds(lambda pid, used: [SimpleNamespace(pid=pid, usedGpuMemory=used)], numbers, numbers),
    st.builds(
        lambda kind: kind("x"),
        st.sampled_from([NVMLError, UnicodeDecodeError, OSError, ValueError]).filter(
            lambda kind: kind is not UnicodeDecodeError
        ),
    ),
)
CALLS = (
    *(
        "nvmlSystemGetDriverVersion",
        "nvmlSystemGetCudaDriverVersion_v2",
        "nvmlDeviceGetCount",
        "nvmlDeviceGetUUID",
    ),
    *("nvmlDeviceGetName", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMemoryInfo"),
    *("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage"),
    *("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"),
)


class OddNvml(FakeNvml):
    """A FAKE driver that tells what it was told to tell."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(1)
        self.told = told

    def answer(self, name: str, *arguments: Any) -> Any:
        if name in self.told:
            value = self.told[name]
            if isinstance(value, Exception):
                raise value
            return value
        return super().answer(name, *arguments)


def test_gpus() -> None:
    def check(told: dict[str, Any]) -> None:
        for name in ("x", "\udcff"):
            reading = Gpus(OddNvml(told)).read_with_holders(lambda _pid, name=name: name)  # type: ignore[misc]
            for gpu in reading.gpus:
                assert Gpu.model_validate_json(gpu.model_dump_json())

    fuzz("the driver's words", st.dictionaries(st.sampled_from(CALLS), _odd, max_size=4), check)


VARIABLES = (
    *("SNDR_HOME", "SNDR_CACHE", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME", "HF_HOME"),
    *(
        "HF_HUB_CACHE",
        "HF_ENDPOINT",
        "HF_TOKEN",
        "HF_HUB_OFFLINE",
        "LLAMA_CACHE",
        "OLLAMA_MODELS",
        "PIP_INDEX_URL",
    ),
    *("PIP_FIND_LINKS", "UV_FIND_LINKS", "PIP_CONFIG_FILE", "UV_DEFAULT_INDEX", "DISPLAY", "WAYLAND_DISPLAY"),
)
_variables = st.dictionaries(
    st.sampled_from(VARIABLES),
    st.one_of(
        words, long_words, st.sampled_from(["http://[", "\udcff", "/dev/null", "/proc/self/mem", "~nobody/x"])
    ).map(lambda text: text.replace("\0", "")),
    max_size=5,
)


def test_variables() -> None:
    with tempfile.TemporaryDirectory() as home:

        def check(environment: dict[str, str]) -> None:
            folders = Folders.resolve(environment)
            assert len(os.fsencode(folders.socket)) < 108
            assert folders.data.is_absolute()
            folders.read_lock_owner()
            folders.run_folder_problem()
            other_programs(environment, Path(home))
            found = clear(lambda: package_sources(environment, Path(home)))
            if found is not None:
                assert all(isinstance(word, str) for word in found.arguments)
            hub = Hub(Path(home), environment)
            assert isinstance(hub.endpoint, str)
            if environment.get("DISPLAY", "").isascii() and len(environment.get("DISPLAY", "")) < 40:
                display.refusal(
                    "linux", {name: environment.get(name, "") for name in ("WAYLAND_DISPLAY",)}, ()
                )

        fuzz("variables", _variables, check)


def _made(place: Path, name: str, kind: str) -> None:
    """Put something of this name into a folder, where it is one that a file there can have."""
    if "/" in name or name in {"", ".", ".."} or os.path.lexists(path := place / name.replace("\0", "")):
        return
    assert path.parent == place, "nothing is written anywhere else"
    try:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "checkpoint":
            path.mkdir()
            (path / "config.json").write_text(str(CONFIG).replace("'", '"'))
        else:
            path.write_bytes(b"GGUF")
    except (OSError, ValueError):
        return


def test_folders_of_models() -> None:
    kinds = st.sampled_from(["file", "file", "pipe", "link", "loop", "folder", "checkpoint"])
    endings = st.sampled_from(["", ".gguf", "-00001-of-00003.gguf", "-00001-of-99999.gguf", ".safetensors"])
    one = st.tuples(st.builds(lambda name, end: name + end, file_names, endings), kinds)

    def check(entries: list[tuple[str, str]]) -> None:
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            for name, kind in entries:
                _made(place, name, kind)
            index = ModelIndex(lambda: find_models((Place(place, ModelOrigin.FOLDER, "here"),)))
            models = run(index.models())
            page = ModelPage(seq=1, models=models, folders=(made,))
            assert ModelPage.model_validate_json(page.model_dump_json())
            for file in models:
                assert Path(file.path).is_relative_to(place)
                assert file.id
                assert file.id.isascii()
            for wanted, _ in entries:
                clear(lambda wanted=wanted: run(index.find(wanted)))  # type: ignore[misc]
                clear(lambda wanted=wanted: run(index.find(str(place / wanted.replace("/", "")))))  # type: ignore[misc]

    fuzz("folders of models", st.lists(one, min_size=1, max_size=6), check)
