"""Temporary files go with a start; what PyTorch translated once for this machine does not."""

import shutil
from pathlib import Path

import pytest

from engine_host.engines.temporary_folder import HEADERS, make_temporary_folder


def test_translated_headers_are_there_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "a/b")
    environment = {"TMPDIR": str(tmp_path / "start.tmp"), "VLLM_CACHE_ROOT": str(tmp_path / "cache" / "vllm")}
    headers = tmp_path / "start.tmp" / "torchinductor_a_b" / "precompiled_headers"
    make_temporary_folder(environment)
    (headers / "header.gch").write_text("translated")
    make_temporary_folder(environment)
    shutil.rmtree(tmp_path / "start.tmp")
    assert (tmp_path / "cache" / "vllm" / HEADERS / "header.gch").read_text() == "translated"
    make_temporary_folder(environment)
    assert (headers / "header.gch").read_text() == "translated"


def test_a_start_without_such_a_folder_makes_none(tmp_path: Path) -> None:
    make_temporary_folder({"VLLM_CACHE_ROOT": str(tmp_path / "vllm")})
    assert list(tmp_path.iterdir()) == []
    make_temporary_folder({"TMPDIR": str(tmp_path / "start.tmp")})
    assert list(tmp_path.rglob("*")) == [tmp_path / "start.tmp"]


def test_where_nothing_can_be_shared_it_starts_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "vllm").write_text("no folder")
    make_temporary_folder({"TMPDIR": str(tmp_path / "start.tmp"), "VLLM_CACHE_ROOT": str(tmp_path / "vllm")})
    assert (tmp_path / "start.tmp").is_dir()
