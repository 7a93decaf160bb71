"""Cuts an environment's packages into parts that unpack by themselves, where a machine takes little at once.

usage: python packaging/gpu/parts.py cut SITE FOLDER [--limit 28000000]
       python packaging/gpu/parts.py restore FOLDER/00 SITE

A part is a folder of archives, which needs none of the others: each can be unpacked while the next is on
its way, with Python alone (a machine may lack zstd and xz). Large files are cut into pieces, small ones are
in tar files; `restore` checks every archive's SHA-256 and says which parts SITE has.
"""

import argparse
import hashlib
import io
import json
import lzma
import os
import tarfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

LARGE = 6_000_000
# Bytes before compression: of a piece of a large file, and of small ones in one archive.
PIECE, TOGETHER = 64 * 2**20, 32 * 2**20
LIMIT = 28_000_000
LISTED = "archives.json"
DONE = ".parts"
Archive = dict[str, Any]


def planned(site: Path) -> Iterable[Archive]:
    """The archives of a tree, without their bytes; bytecode is made again over there."""
    small: list[str] = []
    size = number = 0
    files = (path for path in site.rglob("*") if path.is_file() or path.is_symlink())
    # Alike beside alike: they compress together.
    for path in sorted(files, key=lambda path: (path.suffix, str(path))):
        if "__pycache__" in path.parts:
            continue
        name, long = str(path.relative_to(site)), path.lstat().st_size
        if long > LARGE and not path.is_symlink():
            for offset in range(0, long, PIECE):
                number += 1
                piece = {"path": name, "offset": offset, "bytes": min(PIECE, long - offset)}
                yield {"name": f"{number}.xz", **piece, "whole": long, "mode": path.stat().st_mode & 0o777}
            continue
        small.append(name)
        size += long
        if size > TOGETHER:
            number += 1
            yield {"name": f"{number}.xz", "files": small}
            small, size = [], 0
    if small:
        yield {"name": f"{number + 1}.xz", "files": small}


def squeezed(site: Path, folder: Path, archive: Archive) -> Archive:
    """Write one archive into a folder; what is listed of it."""
    if "files" in archive:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name in archive["files"]:
                tar.add(site / name, name, recursive=False)
        raw = buffer.getvalue()
        archive = {"name": archive["name"]}
    else:
        with (site / archive["path"]).open("rb") as file:
            file.seek(archive["offset"])
            raw = file.read(archive["bytes"])
    code = {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": PIECE}
    packed = lzma.compress(raw, format=lzma.FORMAT_XZ, filters=[{"id": lzma.FILTER_X86}, code])
    (folder / archive["name"]).write_bytes(packed)
    return {**archive, "size": len(packed), "sha256": hashlib.sha256(packed).hexdigest()}


def filled(archives: Sequence[Archive], limit: int) -> list[list[Archive]]:
    """The parts: each archive in the first that has room, the largest first. Raises ValueError."""
    parts: list[list[Archive]] = []
    for archive in sorted(archives, key=lambda one: -int(one["size"])):
        if archive["size"] > limit:
            raise ValueError(f"an archive has {archive['size']} bytes, and a part may have {limit}")
        for part in parts:
            if sum(int(one["size"]) for one in part) + archive["size"] <= limit:
                part.append(archive)
                break
        else:
            parts.append([archive])
    return parts


def cut(site: Path, folder: Path, limit: int) -> int:
    """Write the parts of a tree as folders 00, 01, … and say how many they are."""
    folder.mkdir(parents=True)
    plan = list(planned(site))
    with ThreadPoolExecutor() as pool:
        archives = list(pool.map(squeezed, [site] * len(plan), [folder] * len(plan), plan))
    parts = filled(archives, limit)
    for number, part in enumerate(parts):
        place = folder / f"{number:02}"
        place.mkdir()
        for archive in part:
            (folder / archive["name"]).rename(place / archive["name"])
        (place / LISTED).write_text(json.dumps(part), encoding="utf-8")
        print(f"{place}: {sum(int(one['size']) for one in part)} bytes")
    return len(parts)


def unpacked(part: Path, site: Path, archive: Archive) -> None:
    """Put one archive where it belongs. Raises ValueError for one that arrived damaged."""
    packed = (part / archive["name"]).read_bytes()
    if hashlib.sha256(packed).hexdigest() != archive["sha256"]:
        raise ValueError(f"{part / archive['name']} is damaged")
    raw = lzma.decompress(packed)
    if "path" not in archive:
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            tar.extractall(site, filter="tar")
        return
    path = site / archive["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    # Other pieces of the file may be written at the same time.
    file = os.open(path, os.O_RDWR | os.O_CREAT, archive["mode"])
    try:
        os.fchmod(file, archive["mode"])
        written = 0
        while written < len(raw):
            written += os.pwrite(file, raw[written:], archive["offset"] + written)
    finally:
        os.close(file)


def restore(part: Path, site: Path) -> list[str]:
    """Unpack one part; return the names of those that SITE has."""
    archives = json.loads((part / LISTED).read_text(encoding="utf-8"))
    site.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(min(16, len(archives))) as pool:
        list(pool.map(unpacked, [part] * len(archives), [site] * len(archives), archives))
    with (site / DONE).open("a", encoding="utf-8") as done:
        done.write(f"{part.name}\n")
    return sorted(set((site / DONE).read_text(encoding="utf-8").split()))


def main() -> None:
    """Cut a tree, or unpack a part of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="what", required=True)
    cutting = parts.add_parser("cut")
    cutting.add_argument("site", type=Path)
    cutting.add_argument("folder", type=Path)
    cutting.add_argument("--limit", type=int, default=LIMIT, help="bytes of a part")
    restoring = parts.add_parser("restore")
    restoring.add_argument("part", type=Path)
    restoring.add_argument("site", type=Path)
    asked = parser.parse_args()
    if asked.what == "cut":
        print(f"{cut(asked.site, asked.folder, asked.limit)} parts")
    else:
        print(f"unpacked {asked.part.name}, there are {' '.join(restore(asked.part, asked.site))}")


if __name__ == "__main__":
    main()
