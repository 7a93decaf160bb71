"""What a container may have of the machine's memory, as its control groups say it."""

from pathlib import Path

import psutil
import pytest

from engine_host.telemetry.memory_limit import Memory, memory

MIB = 1 << 20
V2 = "0::/user.slice/sndr.service\n"


def groups(root: Path, listed: str, files: dict[str, str | int]) -> Path:
    """Write a system as it would be seen: the groups of this process, and files of control groups."""
    for name, content in {"proc/self/cgroup": listed, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n", encoding="utf-8")
    return root


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A machine of 1 GiB, of which 700 MiB are free; a fake of what psutil reads."""

    class Whole:
        total, available = 1024 * MIB, 700 * MIB

    monkeypatch.setattr(psutil, "virtual_memory", Whole)
    return Memory(Whole.total, Whole.available)


def test_a_group_around_it_limits_too_and_a_cache_of_files_is_free(tmp_path: Path, machine: Memory) -> None:
    inner, outer = "sys/fs/cgroup/user.slice/sndr.service/", "sys/fs/cgroup/user.slice/"
    root = groups(
        tmp_path,
        V2,
        {
            f"{inner}memory.max": "max",
            f"{inner}memory.current": 90 * MIB,
            f"{outer}memory.max": 512 * MIB,
            f"{outer}memory.current": 300 * MIB,
            f"{outer}memory.stat": f"anon 1\ninactive_file {100 * MIB}\nbroken",
        },
    )
    assert memory(root) == Memory(512 * MIB, 312 * MIB)


def test_a_container_reads_its_own_mount_whatever_path_it_is_told(tmp_path: Path, machine: Memory) -> None:
    root = groups(
        tmp_path,
        "5:cpu:/\n4:memory:/docker/0123\n",
        {
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 256 * MIB,
            "sys/fs/cgroup/memory/memory.usage_in_bytes": 400 * MIB,
        },
    )
    assert memory(root) == Memory(256 * MIB, 0), "what is over its limit has nothing left"


@pytest.mark.parametrize(
    ("listed", "most"),
    [
        (V2, "max"),
        (V2, str(1 << 62)),
        (V2, ""),
        (V2, "-5"),
        (V2, "\u0663"),
        ("", str(MIB)),
        ("no groups at all", str(MIB)),
        ("0::/../../etc", "x" * 5000),
    ],
)
def test_what_limits_nothing_or_cannot_be_read_leaves_the_machine(
    tmp_path: Path, machine: Memory, listed: str, most: str
) -> None:
    folder = "sys/fs/cgroup/user.slice/sndr.service/"
    root = groups(tmp_path, listed, {f"{folder}memory.max": most, f"{folder}memory.current": 1})
    assert memory(root) == machine


def test_this_machine_is_read() -> None:
    found = memory()
    assert 0 < found.available <= found.total <= psutil.virtual_memory().total
