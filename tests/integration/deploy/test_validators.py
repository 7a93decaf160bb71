"""Every preset for every target, read by the programs that read such files for real."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
import yaml

from engine_host.protocol.launch.deploy import RenderTarget
from tests.unit.deploy.samples import by_uuid, catalog, everything, rendered, wanted_of, write
from tests.unit.deploy.targets.golden import SELECTION

_SCHEMA = Path(__file__).with_name("kubernetes_schema.json")
_PLUGINS = (
    "/usr/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/local/lib/docker/cli-plugins",
)
_QUADLET = ("/usr/libexec/podman/quadlet", "/usr/lib/podman/quadlet")
# podman-systemd.unit(5) of Podman 4.6, which is older than what any of them has to know.
_QUADLET_KEYS = {
    "AddDevice", "ContainerName", "Environment", "EnvironmentFile", "Exec", "HealthCmd", "HealthInterval",
    "HealthOnFailure", "HealthRetries", "HealthStartPeriod", "HealthTimeout", "Image", "Label",
    "NoNewPrivileges", "PodmanArgs", "PublishPort", "RunInit", "SecurityLabelDisable", "ShmSize", "Volume",
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, RenderTarget], Path]:
    """Everything written down, a folder for each preset and target; two GPUs by UUID among it."""
    root = tmp_path_factory.mktemp("rendered")
    found = {}
    for preset_id, made in everything(root / "resources with a space & a $HOME"):
        found[preset_id, made.target] = write(made, root / preset_id / made.target.value)
    wanted = by_uuid(wanted_of("qwen3.6-27b-k8v4-2x24"))
    for target in RenderTarget:
        found["by-uuid", target] = write(rendered(wanted, target), root / "by-uuid" / target.value)
    assert len(found) == (len(catalog().ids()) + 1) * len(RenderTarget)
    return found


Folders = dict[tuple[str, RenderTarget], Path]


def of_target(folders: Folders, target: RenderTarget) -> Iterator[Path]:
    """The folders of one target."""
    return (folder for (_, one), folder in folders.items() if one is target)


def run(words: Sequence[str | Path], folder: Path, **changes: str) -> "subprocess.CompletedProcess[str]":
    """A validator's answer."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, **changes},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_shells_read_every_script(folders: Folders, tmp_path: Path) -> None:
    scripts = sorted({path for folder in folders.values() for path in folder.glob("*.sh")})
    assert len(scripts) > 4 * len(catalog().ids())
    for script in scripts:
        assert not run(["bash", "-n", script], tmp_path).stderr, script
    # Single quotes around a $ of a path are what is meant.
    said = run(["shellcheck", "--severity=style", "--exclude=SC2016", *scripts], tmp_path)
    assert said.returncode == 0, said.stdout


def test_systemd_takes_every_unit(folders: Folders, tmp_path: Path) -> None:
    units = [
        unit
        for target in (RenderTarget.SYSTEMD, RenderTarget.QUADLET)
        for folder in of_target(folders, target)
        for unit in [*folder.glob("*.service"), *folder.glob("*.timer")]
        # The watchdog is the same for a Quadlet, whose service Podman makes.
        if target is RenderTarget.SYSTEMD
    ]
    (tmp_path / "run").mkdir(mode=0o700)
    # One call for each: those of one preset by UUID and by number have the same name.
    for folder in {unit.parent for unit in units}:
        names = sorted(path.name for path in units if path.parent == folder)
        said = run(
            ["systemd-analyze", "--user", "verify", *(f"./{name}" for name in names)],
            folder,
            XDG_RUNTIME_DIR=str(tmp_path / "run"),
            HOME=str(tmp_path),
        )
        assert said.returncode == 0, said.stderr
        assert not said.stderr.strip(), said.stderr


def test_systemd_refuses_a_unit_that_is_wrong(folders: Folders, tmp_path: Path) -> None:
    """What says yes to everything is no check."""
    service = next(next(of_target(folders, RenderTarget.SYSTEMD)).glob("*.service"))
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "wrong.service").write_text(
        service.read_text(encoding="utf-8").replace("Type=exec", "Type=sometimes"), encoding="utf-8"
    )
    said = run(
        ["systemd-analyze", "--user", "verify", "./wrong.service"],
        tmp_path,
        XDG_RUNTIME_DIR=str(tmp_path / "run"),
    )
    assert "sometimes" in said.stderr


def test_compose_takes_every_file(folders: Folders) -> None:
    words, major = compose()
    for folder in of_target(folders, RenderTarget.COMPOSE):
        if major == 1 and folder.parent.name not in {*SELECTION, "by-uuid"}:
            continue  # Compose 1 takes a second for each.
        text = (folder / "compose.yaml").read_text(encoding="utf-8")
        project = yaml.safe_load(text)
        file = folder / "compose.yaml"
        if major == 1:
            # It is older than these two, and Compose 2 needs them.
            del project["name"]
            for volume in project["services"]["engine"]["volumes"]:
                volume.pop("bind", None)
            file = folder / "compose-1.yaml"
            file.write_text(yaml.safe_dump(project), encoding="utf-8")
        said = run([*words, "--file", file, "config"], folder)
        assert said.returncode == 0, (folder, said.stderr)
        understood = yaml.safe_load(said.stdout)["services"]["engine"]
        meant = project["services"]["engine"]
        # Compose prints a dollar as two again, so that its output is a Compose file.
        assert understood["command"] == meant["command"]
        assert understood["entrypoint"] == meant["entrypoint"]
        assert understood["healthcheck"]["test"] == meant["healthcheck"]["test"]
        given = understood.get("environment") or {}
        assert given | meant["environment"] == given
        targets = {volume["target"] for volume in meant["volumes"]}
        assert {_target(volume) for volume in understood["volumes"]} == targets
        if "demo" in folder.parent.name:
            assert "& a $HOME/models/sndr-demo" in str(understood["volumes"]).replace("$$", "$")


def test_kubernetes_knows_every_field(folders: Folders) -> None:
    kinds = set()
    for folder in of_target(folders, RenderTarget.KUBERNETES):
        for document in documents(folder):
            validator(document["kind"])(document)  # Raises JsonSchemaValueException.
            kinds.add(document["kind"])
    assert {"Deployment", "Service"} <= kinds


def test_kubernetes_schema_refuses_a_field_that_is_not_there(folders: Folders) -> None:
    found = documents(next(of_target(folders, RenderTarget.KUBERNETES)))
    deployment = next(one for one in found if one["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["volumes"] = container.pop("volumeMounts")
    with pytest.raises(fastjsonschema.JsonSchemaValueException, match="volumes"):
        validator("Deployment")(deployment)


def test_kubernetes_objects_find_each_other(folders: Folders) -> None:
    for folder in of_target(folders, RenderTarget.KUBERNETES):
        found = {(one["kind"], one["metadata"]["name"]): one for one in documents(folder)}
        deployment = next(one for (kind, _), one in found.items() if kind == "Deployment")
        service = next(one for (kind, _), one in found.items() if kind == "Service")
        pod = deployment["spec"]["template"]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
        for volume in volumes.values():
            if claim := volume.get("persistentVolumeClaim"):
                assert ("PersistentVolumeClaim", claim["claimName"]) in found
            if map_ := volume.get("configMap"):
                assert ("ConfigMap", map_["name"]) in found
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
        assert all(len(name) <= 63 for _, name in found)


def test_quadlet_units_use_keys_that_podman_has(folders: Folders) -> None:
    for folder in of_target(folders, RenderTarget.QUADLET):
        unit = next(folder.glob("*.container")).read_text(encoding="utf-8")
        section = unit.partition("[Container]\n")[2].partition("\n[")[0]
        keys = {line.partition("=")[0] for line in section.splitlines() if line and not line.startswith(" ")}
        assert keys <= _QUADLET_KEYS


def test_podman_makes_services_of_every_quadlet(folders: Folders, tmp_path: Path) -> None:
    generator = os.environ.get("SNDR_TEST_QUADLET") or next(filter(os.path.exists, _QUADLET), None)
    if generator is None:
        pytest.skip("Podman's Quadlet is not in this release of the system")
    made = set()
    for (preset_id, target), folder in folders.items():
        if target is RenderTarget.QUADLET and preset_id != "by-uuid":
            unit = next(folder.glob("*.container"))
            shutil.copy(unit, tmp_path / unit.name)
            made.add(f"---{unit.stem}.service---")
    said = run([generator, "-dryrun", "-user"], tmp_path, QUADLET_UNIT_DIRS=str(tmp_path))
    assert said.returncode == 0, said.stderr
    assert made <= set(said.stdout.splitlines()), said.stderr


def _target(volume: Any) -> str:
    """Where a volume is mounted, in the long form and in the short one that Compose 1 prints."""
    if isinstance(volume, dict):
        return str(volume["target"])
    parts = str(volume).split(":")
    return parts[-2] if parts[-1] in {"ro", "rw"} else parts[-1]


@cache
def compose() -> tuple[tuple[str, ...], int]:
    """Compose as it can be called here, and its major version."""
    found = os.environ.get("SNDR_TEST_COMPOSE") or shutil.which("docker-compose")
    for folder in _PLUGINS:
        path = Path(folder) / "docker-compose"
        if path.exists() and not os.environ.get("SNDR_TEST_COMPOSE"):
            found = str(path)
    assert found, "Compose is not installed (packaging/system-packages.txt)"
    said = run([found, "version", "--short"], Path("/")).stdout.strip().removeprefix("v")
    return (found,), int(said.partition(".")[0])


def documents(folder: Path) -> list[dict[str, Any]]:
    """The objects in a folder."""
    return list(yaml.safe_load_all(next(folder.glob("*.yaml")).read_text(encoding="utf-8")))


@cache
def validator(kind: str) -> Any:
    """A function that raises for an object which Kubernetes would not take."""
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    name = schema["kinds"][kind]
    return fastjsonschema.compile(
        {"$ref": f"#/definitions/{name}", "definitions": schema["definitions"]}, formats={}
    )
