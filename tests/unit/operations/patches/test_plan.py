"""The patches of a plan: what is selected, and what the engine's environment and command line get."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_host.core.errors import HostError
from engine_host.launch.dependencies import PatchFacts
from engine_host.operations.patches.plan import PatchPlans
from engine_host.overlay.bundle import install_pth
from engine_host.overlay.patch_catalog import PatchCatalog
from engine_host.overlay.selection import Switches
from engine_host.protocol.errors import Reason
from engine_host.protocol.patches import PatchChoice, PatchReason

PATCH = """
id = "{id}"
title = "A test"
family = "test"
problem = "None."
risk = "low"
required = {required}
[applies_to]
vllm = ">=0.26,<0.33"
platforms = ["{platform}"]
[[text]]
module = "vllm.config"
find = "a"
replace = "b"
"""


@dataclass(frozen=True)
class Venv:
    """An environment of vLLM without vLLM."""

    site_packages: Path
    record: Path = Path("/nowhere")
    id: str = "0.32.0-cpu"
    version: str = "0.32.0"
    build: str = "cpu"
    label: str = "vLLM 0.32.0"
    python: Path = Path("/opt/python")


@pytest.fixture
def plans(tmp_path: Path) -> PatchPlans:
    """Three patches: one for this platform, one that is required here, one for another."""
    for name, required, platform in (
        ("one", "false", "cpu"),
        ("two", "true", "cpu"),
        ("gpu", "false", "cuda"),
    ):
        folder = tmp_path / "patches" / name
        folder.mkdir(parents=True)
        text = PATCH.format(id=name, required=required, platform=platform)
        (folder / "patch.toml").write_text(text)
    return PatchPlans(lambda: PatchCatalog.load((tmp_path / "patches",)), Switches, tmp_path / "cache")


def facts(tmp_path: Path) -> PatchFacts:
    return PatchFacts(Venv(tmp_path), "auto", ("Qwen3ForCausalLM",), None, (), tmp_path / "ledger")


def test_the_patches_that_belong_here_become_a_bundle(plans: PatchPlans, tmp_path: Path) -> None:
    made = plans(facts(tmp_path), PatchChoice())
    assert made.planned.chosen == ("one", "two")
    assert made.planned.required == ("two",)
    assert [(out.patch, out.reason) for out in made.planned.left_out] == [("gpu", PatchReason.WRONG_PLATFORM)]
    bundle = Path(made.environment["SNDR_OVERLAY"])
    assert json.loads((bundle / "manifest.json").read_text())["digest"] == made.planned.digest == bundle.name
    assert made.environment["SNDR_OVERLAY_LEDGER"] == str(tmp_path / "ledger")
    assert made.planned.digest in made.environment["VLLM_CACHE_ROOT"]
    assert json.loads(made.argv[made.argv.index("--additional-config") + 1]) == {
        "sndr_patches": made.planned.digest
    }


def test_an_environment_that_is_not_prepared_gets_the_bundle_by_its_path(
    plans: PatchPlans, tmp_path: Path
) -> None:
    made = plans(facts(tmp_path), PatchChoice())
    assert made.environment["PYTHONPATH"] == made.environment["SNDR_OVERLAY"]
    install_pth(tmp_path)
    assert "PYTHONPATH" not in plans(facts(tmp_path), PatchChoice()).environment


def test_without_patches_nothing_enters_the_engine(tmp_path: Path) -> None:
    made = PatchPlans(lambda: PatchCatalog({}), Switches, tmp_path)(facts(tmp_path), PatchChoice())
    assert (made.environment, made.argv, made.planned.digest) == ({}, (), "")
    assert not list(tmp_path.iterdir())


def test_a_required_patch_that_was_taken_away_is_a_refusal(plans: PatchPlans, tmp_path: Path) -> None:
    with pytest.raises(HostError) as raised:
        plans(facts(tmp_path), PatchChoice(off=("two",)))
    assert raised.value.reason is Reason.PATCH_REQUIRED_FAILED


def test_a_name_that_means_nothing_is_refused(plans: PatchPlans, tmp_path: Path) -> None:
    with pytest.raises(HostError) as raised:
        plans(facts(tmp_path), PatchChoice(on=("onee",)))
    assert raised.value.reason is Reason.PATCH_UNKNOWN
