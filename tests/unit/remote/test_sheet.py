"""The sheet of a host: complete, honest about what was not read, and safe to paste anywhere."""

from engine_host.protocol.remote.hosts import (
    HostRole,
    RemoteDisk,
    RemoteEngine,
    RemoteFacts,
    RemoteGpu,
    RemoteHost,
    RemoteMode,
)
from engine_host.remote.lints import lints
from engine_host.remote.sheet import sheet

GIB = 2**30
HOST = RemoteHost(
    name="gpu",
    destination="me@gpu",
    mode=RemoteMode.AGENTLESS,
    model_root="/srv/models",
    role=HostRole.GPU_WORKER,
    rejected="Cache in main memory: rank -9; <b>NVFP4</b> on L4",
    tasks="Bench it routed",
    notes="Not before noon.",
)


def test_what_was_not_read_says_so() -> None:
    text = sheet(HOST, RemoteFacts(host="gpu"), ())
    assert text.startswith("# gpu\n")
    assert "Not read yet: `sndr host probe gpu`" in text
    assert "0" not in text, "nothing that was not measured has a number"
    assert "Not before noon." in text
    assert "* role: gpu-worker" in text
    assert "## Do not\n\n* Cache in main memory: rank -9\n* \\<b\\>NVFP4\\</b\\> on L4\n" in text
    assert "## Left to do\n\n* [ ] Bench it routed\n" in text


def test_everything_that_was_read_is_on_it() -> None:
    facts = RemoteFacts(
        host="gpu",
        read_at={"system": 1000.0, "engines": 5000.0},
        problems={"containers": "docker: permission denied"},
        system="Debian 12",
        cpus=8,
        memory_total=64 * GIB,
        memory_free=32 * GIB,
        gpus=(RemoteGpu(index=0, uuid="GPU-1", name="A card", memory_total=24 * GIB, memory_used=GIB),),
        disks=(RemoteDisk(device="/dev/sda", mount="/", total=9 * GIB, free=GIB, is_root=True),),
        engines=(
            RemoteEngine(
                kind="vllm",
                pid=7,
                user="me",
                arguments=("vllm", "serve", "m", "--served-model-name", "a:b"),
                listens=("0.0.0.0:8000",),
            ),
        ),
        units=("sndr-a.service active",),
    )
    text = sheet(HOST, facts, lints(HOST, facts), facts.engines)
    for part in (
        "system: Debian 12",
        "8 processors",
        "32.0 of 64.0 GiB free",
        "Python: not known",
        "GPU 0: A card, 1.0 of 24.0 GiB used",
        "disk `/` on `/dev/sda` (root)",
        "containers: not read, docker: permission denied",
        "serves `a:b`",
        "sndr-a.service active",
        "* [ ] vllm (process 7) listens on every address",
        "## Kept as it should run",
        "parts of it at",
    ):
        assert part in text, part


def test_text_of_the_host_stays_text() -> None:
    hostile = "# h\n\n## x <script>alert(1)</script> ![a](http://x) `b` \x1b[31m\u202e|"
    facts = RemoteFacts(
        host="gpu",
        read_at={"system": 1.0},
        system=hostile,
        cpu=hostile * 1000,
        containers=(hostile,),
        engines=(RemoteEngine(kind=hostile, pid=1, user=hostile, arguments=(hostile,)),),
    )
    text = sheet(HOST.model_copy(update={"destination": "a"}), facts, ())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n## x" not in text
    outside_of_code = "".join(text.replace("\\`", "").split("`")[::2])
    assert "<script" not in outside_of_code.replace("\\<", "")
    assert "![a](" not in outside_of_code.replace("!\\[", "")
    assert len(text) < 20_000
