"""The command line of a start: what settings become on a given server, and what is refused."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine_host.core.errors import HostError
from engine_host.engines.llamacpp.command import (
    LlamaCppStart,
    command,
    default_threads,
    owned_flags,
)
from engine_host.engines.llamacpp.servers import ServerCapabilities, ServerCommand
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.plans import ServerChoice

SOCKET = Path("/run/sndr/e1.sock")
SERVER = ServerCapabilities(
    command=ServerCommand(ServerChoice.BUILT, ("/opt/llama-server",), Path("/opt/llama-server")),
    version="0.5.0-dev",
    build=None,
    commit="0c1e570",
    flags=frozenset(owned_flags())
    | {"--no-ui", "--no-kv-unified", "--offline", "--log-colors", "--pooling", "--no-repack", "--mlock"},
    kv_types=("f32", "f16", "q8_0", "q4_0"),
    speculation=("none", "draft-mtp", "ngram-mod"),
    devices=(),
    has_unix_socket=True,
)


OWN = ("pools_itself", "pooling", "prompt_cache_mib", "weight_repacking")


def argv(server: ServerCapabilities = SERVER, socket: Path = SOCKET, **changes: Any) -> list[str]:
    own = {name: changes.pop(name) for name in OWN if name in changes}
    chosen = LlamaCppStart("/m/x.gguf", "x", {"context": 4096, "streams": 1, **changes}, **own)
    return list(command(chosen, server, socket)[0])


def value(arguments: list[str], flag: str) -> str:
    return arguments[arguments.index(flag) + 1]


def refused(**changes: Any) -> HostError:
    with pytest.raises(HostError) as caught:
        argv(**changes)
    return caught.value


def test_defaults() -> None:
    plain = argv()
    assert plain[0] == "/opt/llama-server"
    assert value(plain, "--host") == str(SOCKET)
    assert value(plain, "--threads") == value(plain, "--threads-batch") == str(default_threads())
    assert {"--slots", "--metrics", "--jinja", "--no-ui", "--no-kv-unified", "--offline"} <= set(plain)
    for flag in ("--cache-type-k", "--spec-type", "--embeddings", "--gpu-layers", "--flash-attn"):
        assert flag not in plain


@pytest.mark.parametrize(
    ("physical", "allowed", "threads"),
    [(2, 2, 1), (2, 4, 2), (1, 1, 1), (1, 2, 1), (8, 16, 8), (8, 8, 7), (8, 4, 3), (None, 2, 1)],
)
def test_the_cores_that_leave_something_to_others(
    physical: int | None, allowed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: physical)
    monkeypatch.setattr(os, "cpu_count", lambda: allowed)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(allowed)))
    assert default_threads() == threads


def test_the_context_is_for_each_stream() -> None:
    assert value(argv(streams=4), "--ctx-size") == "16384"
    assert value(argv(streams=4), "--parallel") == "4"


def test_settings_become_flags() -> None:
    full = argv(
        kv_type_k="q8_0", kv_type_v="q4_0", flash_attention="on", speculation="draft-mtp", draft_tokens=2,
        gpu_layers=-1, prompt_cache_mib=0, weight_repacking=False, extra_arguments=("--mlock",), threads=3,
    )  # fmt: skip
    assert value(full, "--cache-type-k") == "q8_0"
    assert value(full, "--cache-type-v") == "q4_0"
    assert value(full, "--flash-attn") == "on"
    assert value(full, "--spec-type") == "draft-mtp"
    assert value(full, "--spec-draft-n-max") == "2"
    assert value(full, "--gpu-layers") == "all"
    assert value(full, "--cache-ram") == "0"
    assert value(full, "--threads") == "3"
    assert {"--no-repack", "--mlock"} <= set(full)
    assert "--spec-draft-n-max" not in argv(speculation="ngram-mod")


def test_an_embedding_batch_holds_a_whole_input() -> None:
    flags = argv(embeddings=True, context=2048, prompt_batch=256)
    assert flags.count("--batch-size") == 1, "and is no matter of prompts"
    assert value(flags, "--ubatch-size") == "2048"
    assert value(flags, "--pooling") == "mean"


@pytest.mark.parametrize(
    ("own", "arguments", "batch"),
    [
        ("last", (), None),
        ("", ("--pooling", "last"), None),
        ("mean", ("--pooling=last",), None),
        ("last", ("--pooling", "mean"), "4096"),
        ("cls", (), "4096"),
        ("", (), "4096"),
    ],
)
def test_inputs_whose_last_token_stands_for_all_are_read_in_pieces(
    own: str, arguments: tuple[str, ...], batch: str | None
) -> None:
    """The scores of every word for each token of a batch would take GiBs."""
    flags = argv(embeddings=True, pools_itself=True, pooling=own, extra_arguments=arguments)
    assert ("--ubatch-size" in flags) is (batch is not None)
    assert batch is None or value(flags, "--batch-size") == batch


def test_vectors_are_pooled_once_as_the_model_or_the_person_says() -> None:
    assert "--pooling" not in argv(embeddings=True, pools_itself=True)
    flags = argv(embeddings=True, extra_arguments=("--pooling", "last"))
    assert flags.count("--pooling") == 1
    assert value(flags, "--pooling") == "last"
    assert "--pooling" not in argv(pools_itself=True)


def test_reranking_reads_a_question_and_its_text_at_once() -> None:
    flags = argv(reranking=True, embeddings=True, context=2048)
    assert "--reranking" in flags
    assert value(flags, "--ubatch-size") == "2048"
    assert not {"--embeddings", "--pooling"} & set(flags), "the server sets both by itself"


def test_a_kv_type_the_server_has_not() -> None:
    error = refused(kv_type_k="turbo4")
    assert error.reason is Reason.SETTING_INVALID
    assert error.problem.evidence["setting"] == "kv_type_k"
    assert refused(kv_type_v="turbo4").problem.evidence["setting"] == "kv_type_v"
    assert error.problem.evidence["offered"] == ["f32", "f16", "q8_0", "q4_0"]
    assert "q8_0" in error.problem.cause


def test_a_speculation_the_server_has_not() -> None:
    error = refused(speculation="draft-mtp,draft-eagle3")
    assert error.reason is Reason.SETTING_INVALID
    assert error.problem.evidence["setting"] == "speculation"
    assert error.problem.evidence["offered"] == list(SERVER.speculation)
    assert "the speculation draft-eagle3" in error.problem.message


def test_a_quantised_v_needs_flash_attention() -> None:
    assert refused(kv_type_v="q8_0", flash_attention="off").reason is Reason.SETTING_INVALID


def test_what_the_server_lacks_is_said() -> None:
    bare = replace(SERVER, flags=SERVER.flags - {"--metrics"})
    assert refused(server=bare).reason is Reason.FLAG_UNSUPPORTED
    assert refused(server=replace(SERVER, has_unix_socket=False)).reason is Reason.FLAG_UNSUPPORTED
    assert refused(extra_arguments=("--unknown", "1")).reason is Reason.FLAG_UNSUPPORTED


def test_every_name_that_the_servers_help_has_for_a_flag_of_ours_is_ours() -> None:
    named = replace(SERVER, flags=SERVER.flags | {"--n-ctx"}, spellings=(("-c", "--ctx-size", "--n-ctx"),))
    error = refused(server=named, extra_arguments=("--n_ctx", "5"))
    assert (error.reason, error.problem.evidence["setting"]) == (Reason.SETTING_INVALID, "context")


def test_a_flag_is_given_as_the_servers_help_spells_it() -> None:
    assert argv(
        extra_arguments=("--no_warmup_x", "a_b"),
        server=replace(SERVER, flags=SERVER.flags | {"--no-warmup-x"}),
    )[-2:] == ["--no-warmup-x", "a_b"]


def test_extra_arguments_do_not_overrule() -> None:
    for flag in ("-c", "--host", "--model=/other"):
        assert refused(extra_arguments=(flag, "1")).reason is Reason.SETTING_INVALID
    assert argv(extra_arguments=("--mlock", "-1"))[-1] == "-1"


def test_socket_paths_that_llama_server_refuses() -> None:
    assert refused(socket=Path("/run/e1")).reason is Reason.SETTING_INVALID
    assert refused(socket=Path("/run") / ("x" * 120 + ".sock")).reason is Reason.SETTING_INVALID
