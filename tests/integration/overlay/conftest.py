"""The small package that stands for vLLM."""

from pathlib import Path

import pytest

from tests.unit.overlay.fake_vllm import FakeVllm


@pytest.fixture
def vllm(tmp_path: Path) -> FakeVllm:
    """A FAKE vLLM without patches."""
    return FakeVllm(tmp_path)
