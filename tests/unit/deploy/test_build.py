"""What a deployment is made of: where its model is, what is checked, what a person is told."""

import base64
import io
import json
import random
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from engine_host.core.errors import HostError
from engine_host.deploy.build import deployment_of, mounts_of
from engine_host.deploy.deployment import Gpus, Mount, Overlay, Root, name_of
from engine_host.deploy.llamacpp_image import image_server
from engine_host.deploy.spec import DeploySpec, ModelSource
from engine_host.deploy.targets.kubernetes import overlay_archive
from engine_host.engines.llamacpp import command as llamacpp
from engine_host.engines.vllm import command as vllm
from engine_host.protocol.catalog import PresetEngine, Task
from engine_host.protocol.errors import Reason
from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import (
    PATCHED,
    UUIDS,
    by_uuid,
    catalog,
    deployed,
    everything,
    rendered,
    wanted_of,
)


def hub_cache(folder: Path) -> Path:
    """A checkpoint as a hub's cache has it: links to files named by their content."""
    repository = folder / "models--a--b"
    snapshot = repository / "snapshots" / "0123"
    blobs = repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for name in ("config.json", "model.safetensors"):
        (blobs / name[:3]).write_text("", encoding="utf-8")
        (snapshot / name).symlink_to(Path("../../blobs") / name[:3])
    return snapshot


def test_a_snapshot_is_mounted_with_what_its_links_lead_to(tmp_path: Path) -> None:
    snapshot = hub_cache(tmp_path)
    mounts, inside = mounts_of(snapshot)
    assert mounts == (Mount(tmp_path / "models--a--b", "models--a--b"),)
    assert inside == "models--a--b/snapshots/0123"


def test_a_gguf_file_of_a_hub_is_mounted_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("", encoding="utf-8")
    link = tmp_path / "x" / "model.gguf"
    link.parent.mkdir()
    link.symlink_to("../blob")
    assert mounts_of(link) == ((Mount(tmp_path / "blob", "model.gguf"),), "model.gguf")


def test_all_parts_of_a_split_file_are_mounted(tmp_path: Path) -> None:
    parts = tuple(tmp_path / f"m-0000{n}-of-00002.gguf" for n in (1, 2))
    for part in parts:
        part.write_text("", encoding="utf-8")
    mounts, inside = mounts_of(parts[0], parts)
    assert [mount.source for mount in mounts] == list(parts)
    assert inside == parts[0].name


def test_a_folder_alone_is_mounted_alone(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    assert mounts_of(folder) == ((Mount(folder, "model"),), "model")


@pytest.mark.parametrize("preset_id", [one for one in catalog().ids() if "sglang" not in one])
def test_arguments_are_those_of_a_start_here_but_for_where_it_listens(preset_id: str) -> None:
    """What differs is the program, the model's place, where it listens, and threads, which a machine has."""
    spec = wanted_of(preset_id)
    made = deployed(spec, RenderTarget.DOCKER)
    words = list(made.arguments)
    if spec.engine is PresetEngine.VLLM:
        start = vllm.VllmStart("/m", spec.alias, spec.values, revision=spec.model.revision)
        build = "cuda" if spec.gpus.count else "cpu"
        additions = vllm.Additions(*((PATCHED.argv,) if spec.patched else ()))
        argv, environment = vllm.command(start, Path("/p"), build, Path("/s.sock"), Path("/c"), additions)
        here, words = list(argv[2 + len(vllm.ENTRY) :]), words[1:]
        for name in ("VLLM_CPU_KVCACHE_SPACE", "VLLM_BATCH_INVARIANT"):
            assert environment.get(name) == made.environment.get(name)
    else:
        pools_itself = Task.EMBEDDING in spec.model.tasks
        start_of = llamacpp.LlamaCppStart("/m", spec.alias, spec.values, pools_itself)
        server = image_server("b1")
        here = list(llamacpp.command(start_of, server, Path("/s.sock"))[0][len(server.command.argv) + 2 :])
        words = words[2:]
        if spec.values.get("threads") is None:
            place = here.index("--threads")
            del here[place : place + 4]
    place = here.index("/s.sock")
    del here[place - 1 : place + 1]
    assert words == here


@pytest.mark.parametrize("preset_id", ["demo-vllm", "demo-llamacpp"])
def test_variables_are_written_down(preset_id: str) -> None:
    spec = wanted_of(preset_id)
    spec = replace(spec, values={**spec.values, "variables": ["GGML_X=1", "LD_LIBRARY_PATH=/opt/a b"]})
    made = deployed(spec, RenderTarget.DOCKER)
    assert made.environment["GGML_X"] == "1"
    assert made.environment["LD_LIBRARY_PATH"] == "/opt/a b"


def test_embeddings_and_scores_are_checked_as_such() -> None:
    assert deployed(wanted_of("qwen3-embedding-0.6b"), RenderTarget.DOCKER).check.path == "/v1/embeddings"
    assert deployed(wanted_of("qwen3-reranker-0.6b"), RenderTarget.DOCKER).check.path == "/v1/rerank"
    check = deployed(wanted_of("demo-vllm"), RenderTarget.DOCKER).check
    assert (check.path, check.body["max_tokens"]) == ("/v1/completions", 1)


def test_a_long_prompt_is_waited_for() -> None:
    patience = {
        name: deployed(wanted_of(name), RenderTarget.SYSTEMD).patience
        for name in ("demo-llamacpp", "qwen3.6-27b-q4-24")
    }
    assert patience["demo-llamacpp"] == 3
    assert patience["qwen3.6-27b-q4-24"] * 120 > 200_000 / 300


def test_what_sglang_has_no_argument_for_is_told() -> None:
    wanted = wanted_of("qwen3.6-35b-a3b-sglang-4xl4")
    values = {**wanted.values, "speculation": "mtp", "kv_cache_dtype": "fp8", "eager": True, "threads": 4}
    made = deployed(replace(wanted, values=values), RenderTarget.DOCKER)
    words = " ".join(made.arguments)
    assert "--kv-cache-dtype fp8_e4m3" in words
    assert "--disable-cuda-graph" in words
    told = {
        finding.evidence["setting"]
        for finding in made.findings
        if finding.id == "render.setting-without-counterpart"
    }
    assert told == {"speculation=mtp", "threads=4"}


@pytest.mark.parametrize(
    ("preset", "word"),
    [
        ("qwen3.6-35b-a3b-sglang-4xl4", "--context_length=4"),
        ("qwen3.6-35b-a3b-sglang-4xl4", "--model-p"),
        ("qwen3.6-27b-k8v4-2x24", "--max_model_len"),
        ("demo-llamacpp", "--hf_repo"),
    ],
)
def test_no_extra_argument_says_what_the_program_says(preset: str, word: str) -> None:
    wanted = wanted_of(preset)
    with pytest.raises(HostError) as caught:
        deployed(
            replace(wanted, values={**wanted.values, "extra_arguments": (word, "1")}), RenderTarget.DOCKER
        )
    assert caught.value.reason is Reason.SETTING_INVALID


def test_gpus_are_named_in_every_targets_own_terms() -> None:
    wanted = by_uuid(wanted_of("qwen3.6-27b-k8v4-2x24"))
    first, second = wanted.gpus.uuids

    def text(target: RenderTarget) -> str:
        return rendered(wanted, target).files[0].text

    assert f"CUDA_VISIBLE_DEVICES=${{SNDR_GPUS:-{first},{second}}}" in text(RenderTarget.SHELL)
    assert f"CUDA_VISIBLE_DEVICES={first},{second}\n" in text(RenderTarget.SYSTEMD)
    assert f"""gpus='"device={first},{second}"'""" in text(RenderTarget.DOCKER)
    assert f'"${{SNDR_GPUS:-{first},{second}}}"' in text(RenderTarget.PODMAN)
    assert f"AddDevice=nvidia.com/gpu={second}\n" in text(RenderTarget.QUADLET)
    assert f"${{SNDR_GPU_1:-{second}}}" in text(RenderTarget.COMPOSE)
    assert "nvidia.com/gpu: 2" in text(RenderTarget.KUBERNETES)
    found = {one.id for one in rendered(wanted, RenderTarget.KUBERNETES).findings}
    assert "render.gpus-by-cluster" in found


def test_a_processor_gets_no_gpus() -> None:
    for target in RenderTarget:
        for file in rendered(wanted_of("demo-vllm"), target).files:
            if file.name == "watchdog.py":
                # The program is the same for all; its unit says whether GPUs are looked at.
                continue
            assert "nvidia" not in file.text
            assert "--gpus" not in file.text
            assert "CUDA" not in file.text


def test_a_drafter_of_this_machine_is_mounted_too(tmp_path: Path) -> None:
    drafter, model = tmp_path / "drafter", tmp_path / "model"
    for folder in (drafter, model):
        folder.mkdir()
    spec = json.dumps({"method": "mtp", "model": str(drafter), "num_speculative_tokens": 3})
    wanted = replace(
        wanted_of("gemma-4-31b-2x24"), model=ModelSource(title="m", path=model), values={"speculation": spec}
    )
    made = deployed(wanted, RenderTarget.DOCKER)
    assert {mount.source for mount in made.mounts} == {drafter, model}
    words = made.arguments
    placed = json.loads(words[words.index("--speculative-config") + 1])
    assert placed["model"] == "/sndr/models/drafter"
    assert made.environment["HF_HUB_OFFLINE"] == "1"
    native = deployed(wanted, RenderTarget.SHELL).arguments
    assert json.loads(native[native.index("--speculative-config") + 1])["model"] == str(drafter)


def test_a_drafter_that_is_elsewhere_is_fetched(tmp_path: Path) -> None:
    wanted = replace(wanted_of("gemma-4-31b-2x24"), model=ModelSource(title="m", path=tmp_path))
    environment = deployed(wanted, RenderTarget.DOCKER).environment
    assert "HF_HUB_OFFLINE" not in environment
    assert environment["HF_HOME"] == f"{Root.CACHE}/huggingface"


def test_the_overlay_of_a_cluster_is_whole_and_always_the_same() -> None:
    wanted = wanted_of("demo-vllm")
    made = rendered(wanted, RenderTarget.KUBERNETES)
    map_ = next(one for one in yaml.safe_load_all(made.files[0].text) if one["kind"] == "ConfigMap")
    content = base64.b64decode(map_["binaryData"]["overlay.tar.gz"])
    assert content == overlay_archive(PATCHED.overlay)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        found = {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]
    assert found == dict(PATCHED.overlay.files)


def test_an_overlay_that_no_cluster_takes_is_refused() -> None:
    noise = random.Random(0).randbytes(1 << 20).hex()
    overlay = Overlay("d" * 16, ("large",), {"a.py": noise})
    wanted = replace(wanted_of("demo-vllm"), patched=replace(PATCHED, overlay=overlay))
    with pytest.raises(HostError) as refused:
        rendered(wanted, RenderTarget.KUBERNETES)
    assert refused.value.reason is Reason.UNSUPPORTED
    assert rendered(wanted, RenderTarget.COMPOSE)


def test_a_model_that_is_nowhere_is_refused() -> None:
    wanted = DeploySpec("a", "A", "a", PresetEngine.LLAMA_CPP, {}, Gpus(0), ModelSource("A"), native=False)
    with pytest.raises(HostError) as refused:
        deployment_of(wanted)
    assert refused.value.reason is Reason.NOT_FOUND


def test_every_preset_is_written_for_every_target() -> None:
    found = set()
    for preset_id, made in everything():
        found.add((preset_id, made.target))
        names = [file.name for file in made.files]
        assert len(names) == len(set(names)), preset_id
        assert made.start
        assert made.stop
        for file in made.files:
            assert "\x01" not in file.text, "a folder whose place was not put in"
            assert file.text.endswith("\n") or file.name.startswith("overlay/")
        if "overlay/manifest.json" in names:
            # What applies the patches is there, and the engine is told of it.
            text = "".join(file.text for file in made.files[:1])
            assert "SNDR_OVERLAY" in text
            assert "sndr_patches" in text
            assert "PYTHONPATH" in text
    assert len(found) == len(catalog().ids()) * len(RenderTarget)


def test_a_name_that_begins_with_the_programs_has_it_once() -> None:
    assert name_of("sndr-demo") == "sndr-demo"
    assert name_of("sndr") == "sndr"
    assert name_of("demo-vllm") == "sndr-demo-vllm"


def test_what_is_fetched_without_a_hash_is_told() -> None:
    wanted = wanted_of("qwen3.6-27b-q4-24")
    for sha256, told in ((None, True), ("0" * 64, False)):
        files = tuple(file.model_copy(update={"sha256": sha256}) for file in wanted.model.files)
        made = rendered(replace(wanted, model=replace(wanted.model, files=files)), RenderTarget.SHELL)
        assert ("render.download-not-checked" in {one.id for one in made.findings}) is told


def test_a_cluster_gets_each_thing_once_and_is_cleared_whole() -> None:
    made = rendered(wanted_of("qwen3.6-27b-k8v4-2x24"), RenderTarget.KUBERNETES)
    assert {file.name for file in made.files} == {f"{made.name}.yaml", "secrets.env"}
    documents = list(yaml.safe_load_all(made.files[0].text))
    kinds = {one["kind"].lower() for one in documents}
    (removed,) = [word for word in made.stop.split() if "," in word]
    (claims,) = [one for one in made.findings if one.id == "render.claims-stay"]
    assert claims.fix is not None
    assert "persistentvolumeclaim" in (claims.fix.command or "")
    assert kinds - set(removed.split(",")) == {"persistentvolumeclaim"}
    selector = made.stop.rpartition(" ")[2].split("=")
    assert all(one["metadata"]["labels"] == {selector[0]: selector[1]} for one in documents)
    (workload,) = [one for one in documents if one["kind"] == "Deployment"]
    resources = workload["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert set(resources["requests"]) == {"cpu", "memory"}
    assert resources["limits"] == {"nvidia.com/gpu": 2}


def test_the_gpus_of_a_compose_file_can_be_named_from_outside() -> None:
    wanted = wanted_of("qwen3.6-27b-k8v4-2x24")
    text = rendered(wanted, RenderTarget.COMPOSE).files[0].text
    assert "${SNDR_GPU_0:-0}" in text
    text = rendered(by_uuid(wanted), RenderTarget.COMPOSE).files[0].text
    assert f"${{SNDR_GPU_1:-{UUIDS[1]}}}" in text


@pytest.mark.parametrize(("address", "published"), [("::1", "[::1]"), ("10.1.2.3", "10.1.2.3")])
def test_an_ipv6_address_stands_in_brackets_before_a_port(address: str, published: str) -> None:
    wanted = replace(wanted_of("demo-vllm"), address=address)
    quadlet = rendered(wanted, RenderTarget.QUADLET)
    container = next(file.text for file in quadlet.files if file.name.endswith(".container"))
    assert f"PublishPort={published}:8000:8000" in container.splitlines()
    (compose,) = (
        file for file in rendered(wanted, RenderTarget.COMPOSE).files if file.name == "compose.yaml"
    )
    ports = yaml.safe_load(compose.text)["services"]["engine"]["ports"]
    assert ports == [f"${{SNDR_ADDRESS:-{published}}}:${{SNDR_PORT:-8000}}:8000"]
    watchdog = next(
        file.text for file in rendered(wanted, RenderTarget.SYSTEMD).files if "watchdog.service" in file.name
    )
    assert f"http://{published}:8000" in watchdog
    unit = rendered(wanted, RenderTarget.SYSTEMD).files[0].text
    assert f"--host {address} " in unit.replace("\\\n", " "), "alone it has none"
