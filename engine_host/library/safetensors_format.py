"""The safetensors container: the table of tensors at its start, read from a file that nobody has checked.

The data is not touched. Source: the format description of huggingface/safetensors (8 bytes little-endian
length, a JSON object of that length, then the data).
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from engine_host.core.errors import HostError
from engine_host.core.outside import files, json_text
from engine_host.library.unreadable import unreadable
from engine_host.protocol.errors import Reason
from engine_host.protocol.language import tr

# Half of what the reference implementation takes; large files of 2026 have tables of 3 MB.
MAX_HEADER = 50_000_000
MAX_TENSORS = 200_000
MAX_NAME = 1_024
MAX_DTYPE = 32
MAX_DIMENSIONS = 8
MAX_ELEMENTS = 1 << 60
# A table has no more commas than this a tensor: between its keys, lengths, offsets and neighbours.
_COMMAS = 7
_METADATA = "__metadata__"


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file: its type as the file names it, and how many elements it has."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The product of its shape; 1 for a scalar."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Shard:
    """The parsed header of one safetensors file; `size` in bytes, of the whole file."""

    path: Path
    tensors: tuple[StoredTensor, ...]
    size: int


def read_shard(path: Path) -> Shard:
    """Reads one file's table of tensors.

    Raises HostError(model_file_missing) for a file that is not there or may not be read,
    HostError(model_file_damaged) for one that is truncated or is no safetensors file.
    """
    try:
        with files.open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8:
                raise _cut_short(path, size, 8)
            if length > MAX_HEADER:
                raise _damaged(path, size, tr("its table of tensors claims {length} bytes", length=length))
            if 8 + length > size:
                raise _cut_short(path, size, 8 + length)
            table = file.read(length)
            if len(table) < length:
                raise _cut_short(path, size, 8 + length)
    except FileNotFoundError as error:
        raise HostError(
            Reason.MODEL_FILE_MISSING,
            tr("{path} of the model in {parent} is missing.", path=path.name, parent=path.parent),
            cause="The download did not finish, or the file was moved.",
            fix=tr("Fetch {path} into the same folder.", path=path.name),
            evidence={"path": str(path), "missing": [path.name]},
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error
    tensors, end = _tensors(path, size, table)
    if 8 + length + end > size:
        raise _cut_short(path, size, 8 + length + end)
    return Shard(path, tensors, size)


def _tensors(path: Path, size: int, table: bytes) -> tuple[tuple[StoredTensor, ...], int]:
    """The tensors, and how many bytes of data they need."""
    try:
        listed = json_text.parse_object(table, MAX_TENSORS * _COMMAS)
    except ValueError as error:
        raise _damaged(path, size, tr("its table of tensors cannot be read: {error}", error=error)) from error
    del table
    found: list[StoredTensor] = []
    end = 0
    for name, entry in listed.items():
        if name == _METADATA:
            continue
        if len(found) == MAX_TENSORS or len(name) > MAX_NAME:
            raise _damaged(path, size, tr("its table of tensors is longer than any such table"))
        if (one := _tensor(name, entry)) is None:
            raise _damaged(path, size, tr("the tensor {name} is not described", name=repr(name[:100])))
        tensor, begin, stop = one
        if not 0 <= begin <= stop or tensor.elements > MAX_ELEMENTS:
            raise _damaged(path, size, tr("the tensor {name} has impossible measures", name=repr(name[:100])))
        found.append(tensor)
        end = max(end, stop)
    return tuple(found), end


def _tensor(name: str, entry: Any) -> tuple[StoredTensor, int, int] | None:
    """A tensor with the begin and the end of its data; None for what describes none."""
    if not isinstance(entry, dict):
        return None
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or len(dtype) > MAX_DTYPE:
        return None
    if not _are_counts(shape) or len(shape) > MAX_DIMENSIONS or not _are_counts(offsets) or len(offsets) != 2:
        return None
    return StoredTensor(name, dtype, tuple(shape)), offsets[0], offsets[1]


def _are_counts(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(one) is int and 0 <= one <= MAX_ELEMENTS for one in values)


def _cut_short(path: Path, size: int, needed: int) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        tr(
            "{path} is truncated: {size} of {needed} bytes are there.",
            path=path.name,
            size=size,
            needed=needed,
        ),
        cause="The download or the copy did not finish.",
        fix="Fetch the file again.",
        evidence={"path": str(path), "size": size, "expected": needed, "missing": needed - size},
    )


def _damaged(path: Path, size: int, detail: str) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        tr("{path} is damaged: {detail}.", path=path.name, detail=detail),
        cause="The file is no safetensors file, or it changed after it was written.",
        fix="Fetch the file again and compare its checksum.",
        evidence={"path": str(path), "size": size},
    )
