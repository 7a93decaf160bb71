"""GGUF files of strangers: read or refused, in little time and memory, and computed with in no more."""

import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine_host.core.package_data import resources
from engine_host.fit.shapes.read import model_of
from engine_host.library.gguf import read_gguf
from engine_host.library.gguf_format import MAX_TENSORS, read_header
from tests.hostile.effort import cheap, clear, fuzz, linear
from tests.hostile.making import gguf
from tests.hostile.reports import computed

pytestmark = pytest.mark.fuzz
DEMO = next((resources() / "models").rglob("*.gguf"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model-00001-of-00001.gguf"


def read(path: Path) -> None:
    """Read a file, and compute with what it says."""
    info = clear(lambda: read_gguf(path))
    if info is not None:
        model = clear(lambda: model_of(info, "it"))
        if model is not None:
            computed(model)


def header_of_the_demo() -> bytes:
    header = read_header(DEMO)
    with DEMO.open("rb") as opened:
        return opened.read(header.data_start)


def test_structured(file: Path) -> None:
    def check(content: bytes) -> None:
        file.write_bytes(content)
        read(file)

    fuzz("GGUF with anything in its frame", gguf.structured, check)


def test_damaged(file: Path) -> None:
    sound = header_of_the_demo()

    def check(content: bytes) -> None:
        with file.open("wb") as opened:
            opened.write(content)
            # As long as the whole file, so that its tensors seem to be there.
            opened.truncate(DEMO.stat().st_size)
        read(file)

    fuzz("GGUF of the demo model, damaged", gguf.damaged(sound), check)


NUMBERS = [name for name in gguf.KEYS if name.startswith(("qwen35.", "split", "general.a", "general.f"))]


@pytest.mark.parametrize("count", [2**20, 2**31, 2**47, 2**64 - 1], ids=hex)
def test_absurd_numbers_cost_nothing(file: Path, count: int) -> None:
    pairs = [gguf.text("general.architecture") + struct.pack("<I", gguf.STRING) + gguf.text("qwen35")]
    for key in NUMBERS:
        if key not in {"general.architecture", "general.alignment"}:
            kind = struct.pack("<I", 10)
            pairs.append(gguf.text(key) + kind + struct.pack("<Q", count))
    content = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs)) + b"".join(pairs)
    file.write_bytes(content + bytes(64))
    cheap(lambda: read(file))


PLACES = ("tensors", "values", "string", "array", "strings", "name", "dimensions", "offset")


@pytest.mark.parametrize("place", PLACES)
def test_absurd_counts_cost_nothing(file: Path, place: str) -> None:
    for count in (2**24, 2**31, 2**47, 2**64 - 1):
        declare(file, place, count)
        cheap(lambda: read(file))


def declare(file: Path, place: str, count: int) -> None:
    """Write a file that declares this count there, and is as large as the count asks for."""
    wide = min(count, 2**32 - 1)
    body = {
        "tensors": struct.pack("<QQ", count, 0),
        "values": struct.pack("<QQ", 0, count),
        "string": struct.pack("<QQ", 0, 1) + gguf.text("k") + struct.pack("<IQ", gguf.STRING, count),
        "array": struct.pack("<QQ", 0, 1) + gguf.text("k") + struct.pack("<IIQ", gguf.ARRAY, 4, count),
        "strings": struct.pack("<QQ", 0, 1) + gguf.text("k") + struct.pack("<IIQ", gguf.ARRAY, 8, count),
        "name": struct.pack("<QQQ", 1, 0, count),
        "dimensions": struct.pack("<QQ", 1, 0) + gguf.text("t") + struct.pack("<I", wide),
        "offset": struct.pack("<QQ", 1, 0) + gguf.text("t") + struct.pack("<IQIQ", 1, 8, 0, count),
    }[place]
    with file.open("wb") as opened:
        opened.write(struct.pack("<4sI", b"GGUF", 3) + body)
        # Sparse: the file claims to be as large as what it declares.
        opened.truncate(1 << 40)


def test_as_many_tensors_as_are_taken(file: Path) -> None:
    one = gguf.text("blk.0.attn_q.weight") + struct.pack("<IQQIQ", 2, 1, 1, 0, 0)
    file.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, MAX_TENSORS, 0) + one * MAX_TENSORS + bytes(64))
    cheap(lambda: clear(lambda: read_header(file)), seconds=0.5)


def test_strings_take_time_by_their_number() -> None:
    with tempfile.TemporaryDirectory() as folder:

        def of(size: int) -> Callable[[], object]:
            path = Path(folder) / f"{size}.gguf"
            head = gguf.text("k") + struct.pack("<IIQ", gguf.ARRAY, gguf.STRING, size)
            path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + head + bytes(8 * size))
            return lambda: read_header(path)

        linear(of, 20_000)
