"""Probing a llama-server: what is read from its help, and programs that are none."""

import asyncio
import os
import stat
import time
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.servers import (
    ServerCapabilities,
    ServerCommand,
    ServerProber,
    capabilities,
    kv_label,
    own_command,
    parse_choices,
    parse_devices,
    parse_flags,
)
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import ServerChoice

HELP = """\
----- common params -----

-h,    --help, --usage                  print usage and exit
-m,    --model FNAME                    model path to load
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
                                        (env: LLAMA_ARG_FLASH_ATTN)
-ctk,  --cache-type-k TYPE              KV cache data type for K
                                        allowed values: f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl,
                                        q5_0, turbo4
                                        (default: f16)
--list-devices                          print list of available devices and exit
--spec-type none,draft-mtp,ngram-mod
                                        comma-separated list of types of speculative decoding to use (default:
                                        none)
--draft, --draft-n, --draft-max N       the argument has been removed. use --spec-draft-n-max or
                                        --spec-ngram-mod-n-max
--host HOST                             IP addresses to listen on, or UNIX socket paths
                                        ending in .sock
--slots, --no-slots                     expose slots monitoring endpoint (default: enabled)
--metrics                               enable prometheus compatible metrics endpoint (default: disabled)
--jinja, --no-jinja                     whether to use jinja template engine for chat (default: enabled)
--pooling {none,mean,cls,last,rank}     pooling type for embeddings, use model default if unspecified
"""
COMMAND = ServerCommand(ServerChoice.OWN, ("llama-server",), Path("/opt/llama-server"))


def server(version: str = "version: 0.5.0-dev (build 1, commit 0c1e570)\n") -> ServerCapabilities:
    return capabilities(COMMAND, version, HELP, "Available devices:\n  (none)")


def test_flags_and_choices_are_read_from_the_help() -> None:
    flags = parse_flags(HELP)
    assert {"-m", "--model", "-fa", "--flash-attn", "--no-slots", "--metrics"} <= flags
    assert not {"--draft", "--draft-n", "--draft-max"} & flags, "it says that they were removed"
    assert not [flag for flag in flags if " " in flag or "," in flag]
    assert parse_choices(HELP, "--cache-type-k") == (
        *("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "turbo4"),
    )
    assert parse_choices(HELP, "--spec-type") == ("none", "draft-mtp", "ngram-mod")
    assert parse_choices(HELP, "--pooling") == ("none", "mean", "cls", "last", "rank")
    assert parse_choices(HELP, "--nothing") == ()


def test_abilities() -> None:
    found = server()
    assert found.has_unix_socket
    assert {"--slots", "--metrics", "--jinja"} <= found.flags
    assert found.devices == ()
    info = found.info()
    assert info.present
    assert info.kv_types[-1] == "turbo4"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("version: 0.5.0-dev (build 1, commit 0c1e570)\nbuilt with GNU 12.2.0", "0.5.0-dev, 0c1e570"),
        ("ggml_cuda_init: found 1 device\nversion: 7234 (ab12cd34e)\nbuilt with", "b7234, ab12cd34e"),
        ("version: xllamacpp-2026.10.11549 (build 11549)", "xllamacpp-2026.10.11549, build 11549"),
        ("something else", "unknown"),
    ],
)
def test_versions_old_and_new(text: str, label: str) -> None:
    assert server(text).label == label


def test_devices() -> None:
    listing = (
        "noise: 1\nAvailable devices:\n  CUDA0: NVIDIA RTX A5000 (24112 MiB, 23800 MiB free)\n  (none)\n"
    )
    assert parse_devices(listing) == ("CUDA0: NVIDIA RTX A5000 (24112 MiB, 23800 MiB free)",)
    assert parse_devices("noise") == ()


def test_labels_claim_no_more_than_is_known() -> None:
    own = server()
    built = capabilities(ServerCommand(ServerChoice.BUILT, ("s",), Path("/s")), "", HELP, "")
    assert kv_label("f16", 64, built) == "f16"
    assert kv_label("q8_0", 128, built) == "q8_0 with rotation"
    assert kv_label("q8_0", 80, built) == "q8_0 without rotation (head size 80)"
    assert kv_label("q8_0", None, built) == "q8_0"
    assert kv_label("q8_0", 128, own) == "q8_0", "a fork may do otherwise"
    assert kv_label("turbo4", 128, own) == "turbo4 (from this server)"


def program(folder: Path, script: str) -> Path:
    path = folder / "llama-server"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def refused(path: Path, timeout: float = 5.0) -> HostError:
    with pytest.raises(HostError) as caught:
        asyncio.run(ServerProber(timeout).probe(own_command(path)))
    return caught.value


def test_a_program_that_fails_shows_its_last_lines(tmp_path: Path) -> None:
    lost = "libcudart.so.12: cannot open shared object file: No such file or directory"
    error = refused(program(tmp_path, f"echo '{lost}' >&2; exit 127"))
    assert error.reason is Reason.ENGINE_UNUSABLE
    assert "libcudart" in str(error)
    assert error.problem.evidence["exit_code"] == 127


def test_an_illegal_instruction_is_named(tmp_path: Path) -> None:
    assert refused(program(tmp_path, "kill -ILL $$")).reason is Reason.ILLEGAL_INSTRUCTION


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    began = time.monotonic()
    error = refused(program(tmp_path, f"sleep 60 & echo $! > {mark}; wait"), timeout=0.5)
    assert error.reason is Reason.ENGINE_UNUSABLE
    assert time.monotonic() - began < 5
    child = int(mark.read_text())
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            break
        time.sleep(0.02)
    else:
        pytest.fail("the child lives on")


def test_a_program_that_prints_for_ever_fills_no_memory(tmp_path: Path) -> None:
    assert refused(program(tmp_path, "yes -x")).reason is Reason.ENGINE_UNUSABLE


def test_another_program_and_no_program(tmp_path: Path) -> None:
    assert "does not answer as llama-server" in str(refused(Path("/bin/echo")))
    for path in (tmp_path / "none", tmp_path):
        assert refused(path).reason is Reason.ENGINE_UNUSABLE
    (tmp_path / "text").write_text("x")
    assert refused(tmp_path / "text").reason is Reason.ENGINE_UNUSABLE
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"\x7fELF garbage")
    damaged.chmod(0o755)
    assert refused(damaged).reason is Reason.ENGINE_UNUSABLE


def test_the_answer_is_kept_until_the_file_changes(tmp_path: Path) -> None:
    count = tmp_path / "count"
    answers = f"case $1 in --version) echo 'version: 1 (abcdef0)';; *) cat {tmp_path}/help;; esac"
    script = f"echo x >> {count}; {answers}"
    (tmp_path / "help").write_text(HELP, encoding="utf-8")
    path = program(tmp_path, script)
    prober = ServerProber()

    async def twice() -> None:
        for _ in range(2):
            await prober.probe(own_command(path))

    asyncio.run(twice())
    assert len(count.read_text().splitlines()) == 3
    os.utime(path, ns=(1, 1))
    asyncio.run(twice())
    assert len(count.read_text().splitlines()) == 6
