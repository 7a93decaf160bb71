"""The safetensors container: the table of tensors at its start, read from a file that nobody has checked.

The data is not touched. Source: the format description of huggingface/safetensors (8 bytes little-endian
length, a JSON object of that length, then the data).
"""

import json
from dataclasses import dataclass
from pathlib import Path

from engine_host.core.errors import HostError
from engine_host.library.unreadable import unreadable
from engine_host.protocol.errors import Reason

# The reference implementation refuses a longer header.
MAX_HEADER = 100_000_000
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
        count = 1
        for length in self.shape:
            count *= length
        return count


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
        # Opening a pipe would wait for ever.
        if not path.is_file():
            raise HostError(
                Reason.MODEL_FILE_MISSING,
                f"{path.name} of the model in {path.parent} is missing.",
                cause="The download did not finish, or the file was moved.",
                fix=f"Fetch {path.name} into the same folder.",
                evidence={"path": str(path), "missing": [path.name]},
            )
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8:
                raise _cut_short(path, size, 8)
            if length > MAX_HEADER:
                raise _damaged(path, size, f"its table of tensors claims {length} bytes")
            if 8 + length > size:
                raise _cut_short(path, size, 8 + length)
            table = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    tensors, end = _tensors(path, size, table)
    if 8 + length + end > size:
        raise _cut_short(path, size, 8 + length + end)
    return Shard(path, tensors, size)


def _tensors(path: Path, size: int, table: bytes) -> tuple[tuple[StoredTensor, ...], int]:
    """The tensors, and how many bytes of data they need."""
    try:
        listed = json.loads(table)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, size, "its table of tensors is not JSON") from error
    if not isinstance(listed, dict):
        raise _damaged(path, size, "its table of tensors is not an object")
    found: list[StoredTensor] = []
    end = 0
    for name, entry in listed.items():
        if name == _METADATA:
            continue
        try:
            dtype, shape, (begin, stop) = str(entry["dtype"]), entry["shape"], entry["data_offsets"]
            sound = 0 <= begin <= stop and all(isinstance(n, int) and n >= 0 for n in shape)
        except (TypeError, KeyError, ValueError) as error:
            raise _damaged(path, size, f"the tensor {name[:100]!r} is not described") from error
        if not sound:
            raise _damaged(path, size, f"the tensor {name[:100]!r} has impossible measures")
        found.append(StoredTensor(name, dtype, tuple(shape)))
        end = max(end, stop)
    return tuple(found), end


def _cut_short(path: Path, size: int, needed: int) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        f"{path.name} is truncated: {size} of {needed} bytes are there.",
        cause="The download or the copy did not finish.",
        fix="Fetch the file again.",
        evidence={"path": str(path), "size": size, "expected": needed, "missing": needed - size},
    )


def _damaged(path: Path, size: int, detail: str) -> HostError:
    return HostError(
        Reason.MODEL_FILE_DAMAGED,
        f"{path.name} is damaged: {detail}.",
        cause="The file is no safetensors file, or it changed after it was written.",
        fix="Fetch the file again and compare its checksum.",
        evidence={"path": str(path), "size": size},
    )
