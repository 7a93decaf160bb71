"""The GGUF container: its header, metadata and tensor table, read from a file that nobody has checked.

Written here because the `gguf` package imports NumPy (0.13 s and 30 MiB on a two-core machine), maps the
whole file and builds a NumPy view for every metadata item, and trusts the counts that the file declares.
The file is read, not mapped: a mapped file that another program truncates ends this process with SIGBUS.

Source: ggml's `docs/gguf.md` and `ggml/src/gguf.cpp`, versions 2 and 3.
"""

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine_host.core.errors import HostError
from engine_host.core.likely_causes import lost_file
from engine_host.core.outside import files
from engine_host.library.unreadable import unreadable
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

MAGIC = b"GGUF"
NEWEST_VERSION = 3
OLDEST_VERSION = 2

# Bounds on what a file may declare: without them a damaged count costs minutes, and gigabytes. Large files of
# 2026 have 150 values, 1,100 tensors (a mixture of an older form 7,000) and 700,000 strings.
MAX_KEY = 65_535
MAX_NAME = 1_024
MAX_VALUES = 10_000
MAX_TENSORS = 20_000
MAX_ITEMS = 3_000_000
MAX_KEPT_STRING = 4 << 20
MAX_KEPT_ARRAY = 4_096
# Bytes of all that is kept of one header; a number in a list counts as what Python takes for it.
MAX_KEPT = 12 << 20
_KEPT_NUMBER = 32
# Bytes that are read at a time to walk over strings.
_PIECE = 1 << 18
MAX_DIMENSIONS = 8
MAX_TENSOR_BYTES = 1 << 60
# A header that claims to reach this far is damaged, not cut short.
MAX_HEADER = 1 << 34
MAX_DEPTH = 2

Value = bool | int | float | str | tuple[bool | int | float, ...]

_SCALARS: dict[int, str] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING = 8
_ARRAY = 9

# ggml type number → (name, elements in a block, bytes of a block).
TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8),
    28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
    42: ("Q2_0", 64, 18),
}  # fmt: skip

_OTHER_KINDS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a ZIP archive (perhaps a PyTorch checkpoint)"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"(\xb5/\xfd", "a Zstandard archive"),
    (0, b"\xfd7zXZ", "an XZ archive"),
    (0, b"7z\xbc\xaf", "a 7-Zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"%PDF", "a PDF document"),
    (0, b"\x7fELF", "a Linux program"),
    (0, b"MZ", "a Windows program"),
    (0, b"\x80\x02", "a Python pickle"),
    (0, b"ggml", "an old GGML model from before GGUF"),
    (0, b"tjgg", "an old GGJT model from before GGUF"),
    (0, b"fmgg", "an old GGMF model from before GGUF"),
    (0, b"version https://git-lfs", "a Git LFS pointer, not the model itself"),
    (0, b"<?xml", "an XML document"),
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """One row of the tensor table; `offset` counts from the start of the data, `size` is None for a
    type this program does not know."""

    name: str
    shape: tuple[int, ...]
    type_number: int
    offset: int
    elements: int
    size: int | None


@dataclass(frozen=True, slots=True)
class Header:
    """The parsed header of one GGUF file; lengths and offsets in bytes."""

    version: int
    values: dict[str, Value]
    lengths: dict[str, int]
    tensors: tuple[Tensor, ...]
    data_start: int
    file_size: int


def kind_of(start: bytes) -> str:
    """Says in words what a file that is no GGUF seems to be, from its first 512 bytes."""
    if not start:
        return tr("an empty file")
    for offset, mark, words in _OTHER_KINDS:
        if start[offset : offset + len(mark)] == mark:
            return words
    text = start.lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head")):
        return tr("a web page (a download link that answered with HTML)")
    if len(start) > 9 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 30:
        return tr("a safetensors file")
    if text.startswith((b"{", b"[")):
        return tr("a JSON document")
    if not any(start):
        return tr("a file of zeros (a download that never finished)")
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start):
        return tr("a text file")
    return tr("a file of an unknown kind")


class _Source:
    """Reads forward through a file whose size is known, and knows when it was cut short."""

    def __init__(self, file: BinaryIO, path: Path, size: int) -> None:
        self.file = file
        self.path = path
        self.size = size
        self.at = 0
        self.items = 0
        self.kept = 0

    def take(self, count: int) -> bytes:
        if count > self.size - self.at:
            raise self.truncated(self.at + count)
        data = self.file.read(count)
        if len(data) != count:
            raise self.truncated(self.at + count)
        self.at += count
        return data

    def skip(self, count: int) -> None:
        if count > self.size - self.at:
            raise self.truncated(self.at + count)
        self.file.seek(count, 1)
        self.at += count

    def number(self, form: str) -> int:
        value = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return int(value)

    def count_items(self, count: int, smallest: int, what: str, most: int = MAX_ITEMS) -> None:
        """Refuses a count that cannot fit in what is left of the file, or that no real file has."""
        self.items += count
        if count > most or self.items > MAX_ITEMS:
            raise self.damaged(tr("it declares {count} {what}", count=count, what=what))
        if count * smallest > self.size - self.at:
            raise self.truncated(self.at + count * smallest)

    def keep(self, count: int) -> None:
        """Count bytes that stay in memory; refuses more than any real header needs."""
        self.kept += count
        if self.kept > MAX_KEPT:
            raise self.damaged(tr("its metadata are larger than {max_kept} bytes", max_kept=MAX_KEPT))

    def string(self, limit: int, what: str) -> str:
        length = self.number("<Q")
        if length > limit:
            raise self.damaged(
                tr("{what} of {length} bytes at byte {at}", what=what, length=length, at=self.at)
            )
        self.keep(length)
        return self.take(length).decode("utf-8", "replace")

    def skip_strings(self, count: int) -> None:
        """Pass over strings, each with its length before it."""
        length_at = struct.Struct("<Q").unpack_from
        start, piece, place = self.at, b"", 0
        for _ in range(count):
            if place + 8 > len(piece):
                start, place = start + place, 0
                self.file.seek(start)
                piece = self.file.read(_PIECE)
                if len(piece) < 8:
                    raise self.truncated(start + 8)
            place += 8 + length_at(piece, place)[0]
            if start + place > self.size:
                raise self.truncated(start + place)
        self.at = start + place
        self.file.seek(self.at)

    def truncated(self, needed: int) -> HostError:
        if needed > MAX_HEADER + self.at:
            return self.damaged(
                tr("at byte {at} it declares {needed} bytes of metadata", at=self.at, needed=needed - self.at)
            )
        return HostError(
            Reason.GGUF_TRUNCATED,
            tr(
                "{path} is truncated: it has {size} bytes and needs {needed} or more.",
                path=self.path.name,
                size=self.size,
                needed=needed,
            ),
            cause="The download or the copy did not finish.",
            fix="Fetch the file again.",
            evidence={"path": str(self.path), "size": self.size, "expected_at_least": needed},
        )

    def damaged(self, detail: str) -> HostError:
        return HostError(
            Reason.MODEL_FILE_DAMAGED,
            tr("{path} is damaged: {detail}.", path=self.path.name, detail=detail),
            cause="The file changed after it was written, or the program that wrote it had a fault.",
            fix="Fetch the file again and compare its checksum.",
            evidence={"path": str(self.path), "size": self.size, "at": self.at},
        )


def _read_value(source: _Source, kind: int, depth: int = 0) -> tuple[Value | None, int | None]:
    """Gives (value, None) or, for an array, (kept numbers or None, its length)."""
    if kind in _SCALARS:
        form = _SCALARS[kind]
        value: bool | int | float = struct.unpack(form, source.take(struct.calcsize(form)))[0]
        return value, None
    if kind == _STRING:
        length = source.number("<Q")
        if length > MAX_KEPT_STRING:
            source.skip(length)
            return None, None
        source.keep(length)
        return source.take(length).decode("utf-8", "replace"), None
    if kind != _ARRAY:
        raise source.damaged(tr("a value of the unknown type {kind} at byte {at}", kind=kind, at=source.at))
    if depth >= MAX_DEPTH:
        raise source.damaged(tr("arrays nested deeper than {max_depth}", max_depth=MAX_DEPTH))
    item_kind = source.number("<I")
    length = source.number("<Q")
    if item_kind in _SCALARS:
        form = _SCALARS[item_kind]
        width = struct.calcsize(form)
        if length > MAX_KEPT_ARRAY:
            source.skip(length * width)
            return None, length
        source.keep(length * _KEPT_NUMBER)
        packed = source.take(length * width)
        return struct.unpack(f"<{length}{form[1:]}", packed), length
    source.count_items(length, 8, "strings")
    if item_kind == _STRING:
        source.skip_strings(length)
        return None, length
    for _ in range(length):
        _read_value(source, item_kind, depth + 1)
    return None, length


def _read_tensor(source: _Source) -> Tensor:
    name = source.string(MAX_NAME, tr("a tensor name"))
    dimensions = source.number("<I")
    if dimensions > MAX_DIMENSIONS:
        raise source.damaged(
            tr("the tensor {name} has {dimensions} dimensions", name=repr(name), dimensions=dimensions)
        )
    shape = tuple(source.number("<Q") for _ in range(dimensions))
    type_number = source.number("<I")
    offset = source.number("<Q")
    elements = 1
    for length in shape:
        elements *= length
    if elements > MAX_TENSOR_BYTES or offset > MAX_TENSOR_BYTES:
        raise source.damaged(tr("the tensor {name} is larger than any disk", name=repr(name)))
    known = TENSOR_TYPES.get(type_number)
    size = None if known is None else -(-elements // known[1]) * known[2]
    return Tensor(name, shape, type_number, offset, elements, size)


def _check_start(source: _Source, start: bytes) -> int:
    """Checks magic and version; gives the version. A version word that is huge is a big-endian file."""
    if start[:4] != MAGIC:
        kind = kind_of(start)
        raise HostError(
            Reason.NOT_GGUF,
            tr("{path} is not a GGUF file: it is {kind}.", path=source.path.name, kind=kind),
            fix="Choose a file in GGUF format, the one llama.cpp reads.",
            evidence={"path": str(source.path), "kind": kind, "first_bytes": start[:16].hex(" ")},
        )
    source.take(4)
    version = source.number("<I")
    big_endian = version & 0xFFFF == 0
    if big_endian or version < OLDEST_VERSION:
        what = (
            tr("was written for a big-endian machine")
            if big_endian
            else tr("is GGUF version {version}", version=version)
        )
        raise HostError(
            Reason.UNSUPPORTED,
            tr("{path} {what}, which llama.cpp does not read here.", path=source.path.name, what=what),
            fix="Fetch a current conversion of the model.",
            evidence={"path": str(source.path), "version": version},
        )
    if version > NEWEST_VERSION:
        raise HostError(
            Reason.GGUF_TOO_NEW,
            tr(
                "{path} is GGUF version {version}; this program reads up to {newest_version}.",
                path=source.path.name,
                version=version,
                newest_version=NEWEST_VERSION,
            ),
            cause="The file was made by a newer converter.",
            fix="Update the program, or fetch a conversion in an older version.",
            evidence={"path": str(source.path), "version": version, "newest_known": NEWEST_VERSION},
        )
    return version


def read_header(path: Path) -> Header:
    """Reads one GGUF file's header, metadata and tensor table, not its data.

    Raises `HostError`: `model_file_missing` (also for a file that may not be read), `not_gguf`,
    `gguf_too_new`, `gguf_truncated`, `model_file_damaged`, `unsupported` (version 1, big-endian).
    """
    try:
        with files.open_regular(path, buffering=1 << 20) as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(512)
            file.seek(0)
            return _read(_Source(file, path, size), start)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _missing(path: Path) -> HostError:
    return HostError(
        Reason.MODEL_FILE_MISSING,
        tr("There is no model file {path}.", path=path),
        cause=lost_file(),
        fix="Choose another file, or rescan the model folders.",
        evidence={"path": str(path)},
    )


def _read(source: _Source, start: bytes) -> Header:
    version = _check_start(source, start)
    tensor_count = source.number("<Q")
    value_count = source.number("<Q")
    source.count_items(value_count, 13, tr("metadata values"), MAX_VALUES)
    values: dict[str, Value] = {}
    lengths: dict[str, int] = {}
    for _ in range(value_count):
        key = source.string(MAX_KEY, tr("a metadata key"))
        value, length = _read_value(source, source.number("<I"))
        if value is not None:
            values[key] = value
        if length is not None:
            lengths[key] = length
    source.count_items(tensor_count, 24, "tensors", MAX_TENSORS)
    tensors = tuple(_read_tensor(source) for _ in range(tensor_count))
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or isinstance(alignment, bool) or not 0 < alignment <= 1 << 20:
        raise source.damaged(tr("its alignment is {alignment}", alignment=repr(alignment)))
    data_start = -(-source.at // alignment) * alignment
    ends = [tensor.offset + tensor.size for tensor in tensors if tensor.size is not None]
    expected = data_start + max(ends, default=0) if tensors else source.at
    if expected > MAX_TENSOR_BYTES:
        raise source.damaged(tr("its tensors need more space than any disk has"))
    if expected > source.size:
        raise HostError(
            Reason.GGUF_TRUNCATED,
            tr(
                "{path} is truncated: {size} of {expected} bytes are there.",
                path=source.path.name,
                size=source.size,
                expected=expected,
            ),
            cause="The download or the copy did not finish.",
            fix="Fetch the file again.",
            evidence={
                "path": str(source.path),
                "size": source.size,
                "expected": expected,
                "missing": expected - source.size,
            },
        )
    return Header(version, values, lengths, tensors, data_start, source.size)
