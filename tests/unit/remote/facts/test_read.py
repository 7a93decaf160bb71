"""Facts from what machines print, also from what no honest machine would."""

import pytest

from engine_host.protocol.remote.hosts import RemoteFacts
from engine_host.remote.facts.engines import engines_of, kind_of
from engine_host.remote.facts.parts import parts_of
from engine_host.remote.facts.read import understood

MARK = "0123abcd"
GPUS = """\
0, GPU-1, NVIDIA H200, 143771, 70000, 12, 41, 120.50, 700.00, 550.90.07
1, GPU-2, NVIDIA H200, 143771, [N/A], [Not Supported], 39, [N/A], 700.00, 550.90.07
nonsense, GPU-3
"""
NVLINKS = """\
GPU 0: NVIDIA H200 (UUID: GPU-1)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
GPU 1: NVIDIA H200 (UUID: GPU-2)
\t Link 0: <inactive>
"""
DISKS = """\
Filesystem     1024-blocks      Used Available Capacity Mounted on
/dev/root         10000000   9000000   1000000      90% /
tmpfs              1000000         0   1000000       0% /run
/dev/nvme1n1     900000000 100000000 800000000      12% /srv/all models
"""


def printed(**parts: tuple[str, int | str]) -> str:
    """The output of the program with these parts."""
    return "".join(
        f"\n{MARK} begin {name}\n{text}\n{MARK} end {code}\n" for name, (text, code) in parts.items()
    )


def read(old: RemoteFacts | None = None, **parts: tuple[str, int | str]) -> RemoteFacts:
    """The facts in these parts, read at 100."""
    return understood(parts_of(printed(**parts), MARK), MARK, old or RemoteFacts(host="gpu"), 100.0)


def test_gpus_with_what_holds_them_and_their_links() -> None:
    facts = read(
        gpus=(GPUS, 0),
        capabilities=("GPU-1, 9.0\nGPU-2, 9.0", 0),
        holders=("GPU-1, 4242, 69000, /usr/bin/python3, vllm\nGPU-1, x, 1, y", 0),
        nvlinks=(NVLINKS, 0),
    )
    first, second = facts.gpus
    assert (first.memory_total, first.memory_used) == (143771 << 20, 70000 << 20)
    assert (first.nvlinks, second.nvlinks, first.capability) == (2, 0, "9.0")
    assert (second.memory_used, second.utilization, second.power) == (None, None, None)
    assert facts.driver == "550.90.07"
    assert [(one.pid, one.name, one.memory) for one in facts.holders] == [
        (4242, "/usr/bin/python3, vllm", 69000 << 20)
    ]


def test_disks_say_which_holds_the_models_and_which_is_the_root() -> None:
    models = DISKS.splitlines()[0] + "\n" + DISKS.splitlines()[3]
    facts = read(disks=(DISKS, 0), models=(models, 0))
    assert [(disk.mount, disk.is_root, disk.holds_models) for disk in facts.disks] == [
        ("/", True, False),
        ("/srv/all models", False, True),
    ]
    assert facts.disks[0].free == 1_000_000 << 10


def test_what_cannot_be_read_keeps_its_old_value_and_time() -> None:
    old = read(disks=(DISKS, 0), memory=("MemTotal: 100 kB\nMemAvailable: 50 kB", 0))
    assert old.memory_total == 100 << 10
    new = understood(
        parts_of(printed(disks=("df: /mnt: Stale file handle", 1), memory=("MemTotal: 7 kB", 0)), MARK),
        MARK, old, 200.0,
    )  # fmt: skip
    assert (new.disks, new.read_at["disks"], new.read_at["memory"]) == (old.disks, 100.0, 200.0)
    assert new.problems["disks"] == "df: /mnt: Stale file handle"


def test_a_clock_that_is_off() -> None:
    assert read(clock=("3700", 0)).clock_ahead == 3600.0
    assert read(clock=("date: no", 1)).clock_ahead is None


def test_a_machine_without_gpus_and_containers_has_none() -> None:
    facts = read(os=('PRETTY_NAME="Debian 12"', 0))
    assert not facts.gpus
    assert not facts.containers
    assert facts.problems["gpus"] == "there is no nvidia-smi"
    assert read(podman=("a\tb", 0)).containers


@pytest.mark.parametrize(
    "hostile",
    [
        "",
        "\0\x1b[2J" * 1000,
        f"{MARK} begin gpus\n" * 1000,
        f"{MARK} end 0\n",
        f"{MARK} begin gpus\n" + "9" * 100_000 + ", a, b, 1e999, nan, inf, -inf, 1, 1, 1",
        f"{MARK} begin engines\n{MARK} process\x1f99999999999999\x1fme\x1fvllm\x1fserve",
        f"{MARK} begin kernel\nLinux\n{MARK} end 0\n",
        f"{MARK} begin models\n{DISKS}{MARK} end 0\n",
        f"{MARK} begin memory\nMemTotal: {'9' * 500} kB\n{MARK} end 0\n",
        f"{MARK} begin disks\nhead\n/dev/a{' ' * 400_000}x\n{MARK} end 0\n",
        f"{MARK} begin disks\nhead\n/dev/a {'1 ' * 200_000}x\n{MARK} end 0\n",
    ],
)
def test_hostile_output_is_understood_as_little_or_nothing(hostile: str) -> None:
    facts = understood(parts_of(hostile, MARK), MARK, RemoteFacts(host="gpu"), 1.0)
    RemoteFacts.model_validate_json(facts.model_dump_json())
    assert not facts.engines
    assert "\x1b" not in facts.model_dump_json()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("/opt/v/bin/python3 /opt/v/bin/vllm serve m", "vllm"),
        ("python -m vllm.entrypoints.openai.api_server", "vllm"),
        ("python3.12 -u -m vllm.entrypoints.cli.main serve m", "vllm"),
        ("/usr/bin/llama-server -m x.gguf", "llama.cpp"),
        ("python -m sglang.launch_server --model x", "sglang"),
        ("/usr/local/bin/ollama serve", "ollama"),
        ("/usr/local/bin/ollama runner --model x", None),
        ("vim vllm.py", None),
        ("grep vllm serve", None),
        ("VLLM::EngineCore", None),
        ("python", None),
        ("", None),
    ],
)
def test_what_counts_as_an_engine(words: str, kind: str | None) -> None:
    assert kind_of(words.split()) == kind


def test_an_engine_with_its_words_and_addresses() -> None:
    text = (
        f"{MARK} process\x1f42\x1fme\x1fvllm\x1fserve\x1fa;b $(c)\x1ed\x1f\n"
        f"{MARK} sockets 77 78\n"
        "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 77 1 0\n"
        "   1: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 99 1 0\n"
        "   2: 00000000000000000000000000000000:1F42 0:0 0A 0:0 00:0 0 1000 0 78 1 0\n"
    )
    (engine,) = engines_of(text, MARK)
    assert engine.arguments == ("vllm", "serve", "a;b $(c)\nd")
    assert engine.listens == ("127.0.0.1:8000", "[::]:8002")


@pytest.mark.parametrize("port", ["F" * 6000, "10000", "0", "-1F40", "", "x"])
def test_a_port_that_is_none_is_no_address(port: str) -> None:
    text = (
        f"{MARK} process\x1f42\x1fme\x1fvllm\x1fserve\x1f\n{MARK} sockets 77\n"
        f"   0: 0100007F:{port} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 77 1 0\n"
    )
    (engine,) = engines_of(text, MARK)
    assert engine.listens == ()
