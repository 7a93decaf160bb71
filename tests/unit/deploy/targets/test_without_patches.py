"""A start without patches has nothing of them in its files: no ledger, no bundle, no word."""

import re

import pytest

from engine_host.protocol.catalog import PresetEngine
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import rendered, wanted_of

PATCHES = re.compile(r"\bpatch(?:es)?\b|ledger|overlay", re.IGNORECASE)


@pytest.mark.parametrize("target", RenderTarget)
@pytest.mark.parametrize("preset", ["demo-llamacpp", "qwen3.6-27b-q4-24"])
def test_files_for_llama_cpp_do_not_speak_of_patches(preset: str, target: RenderTarget) -> None:
    wanted = wanted_of(preset)
    assert wanted.engine is PresetEngine.LLAMA_CPP
    for file in rendered(wanted, target).files:
        assert PATCHES.findall(file.text) == [], file.name


@pytest.mark.parametrize("target", [RenderTarget.DOCKER, RenderTarget.PODMAN])
def test_scripts_for_vllm_say_what_the_folder_beside_them_is_for(target: RenderTarget) -> None:
    script = rendered(wanted_of("demo-vllm"), target).files[0].text
    said = "# Where the engine says what became of each patch stays here, over containers.\n"
    assert said + 'mkdir -p "$here/ledger"\n' in script
