"""The window's client and the presets: each method asks its path and reads its answer."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from engine_host.core.event_log import EventLog
from engine_host.core.package_data import presets
from engine_host.core.settings import SettingsFile
from engine_host.operations.presets.catalog import PresetOperations
from engine_host.protocol.errors import Reason
from engine_host.protocol.presets import ImportPreset, LintPreset, ResolvePreset, SavePreset
from sndr_gui.host.client import HostClient
from sndr_gui.host.errors import HostRefused
from tests.unit.cli.fake_host import TOKEN, FakeHost, fake_host

MINE = "format: 1\nid: mine\ntitle: Mine\nextends: demo-llamacpp\nsettings:\n  context: 4096\n"
RequestedSettings = Callable[[HostClient], Coroutine[Any, Any, Any]]


async def answers(own: Path) -> dict[str, Any]:
    """What the real catalogue says to everything that the window may ask."""
    services = PresetOperations(presets, own, SettingsFile(own / "settings.toml"), EventLog(), lambda: ())
    said = {
        "GET /v1/presets": services.page(),
        "GET /v1/presets/demo-vllm": services.detail("demo-vllm"),
        "GET /v1/presets/demo-vllm/file": services.file("demo-vllm"),
        "GET /v1/presets/demo-vllm/export": services.export("demo-vllm"),
        "GET /v1/catalog": services.entries(),
        "GET /v1/catalog/form": services.form(),
        "POST /v1/presets/resolve": services.resolve(ResolvePreset(preset="demo-vllm")),
        "POST /v1/presets/lint": services.lint(LintPreset(text=MINE, id="mine")),
        "PUT /v1/presets/mine": services.save("mine", SavePreset(text=MINE)),
        "DELETE /v1/presets/mine": services.remove("mine"),
    }
    return {path: (200, (await answer).model_dump(mode="json")) for path, answer in said.items()}


@pytest.mark.parametrize(
    ("received", "path", "body", "read"),
    [
        (lambda c: c.presets(), "GET /v1/presets", None, lambda a: len(a.presets) > 20),
        (
            lambda c: c.preset("demo-vllm"),
            "GET /v1/presets/demo-vllm",
            None,
            lambda a: a.model.id == "sndr-demo",
        ),
        (lambda c: c.preset_file("demo-vllm"), "GET /v1/presets/demo-vllm/file", None, lambda a: a.digest),
        (lambda c: c.export_preset("demo-vllm"), "GET /v1/presets/demo-vllm/export", None, lambda a: a.text),
        (lambda c: c.catalog(), "GET /v1/catalog", None, lambda a: a.here is None and a.hardware),
        (lambda c: c.preset_form(), "GET /v1/catalog/form", None, lambda a: a.settings["properties"]),
        (
            lambda c: c.resolve_preset(ResolvePreset(preset="demo-vllm")),
            "POST /v1/presets/resolve",
            {"preset": "demo-vllm"},
            lambda a: a.overrides.kv_cache_gib == 1,
        ),
        (
            lambda c: c.lint_preset(MINE, "mine"),
            "POST /v1/presets/lint",
            {"text": MINE, "id": "mine"},
            lambda a: a.usable,
        ),
        (
            lambda c: c.save_preset("mine", MINE, None),
            "PUT /v1/presets/mine",
            {"text": MINE, "digest": None},
            lambda a: a.previous is None,
        ),
        (lambda c: c.remove_preset("mine"), "DELETE /v1/presets/mine", None, lambda a: a.previous == MINE),
    ],
)
def test_each_method_asks_its_path_and_reads_the_answer(
    home: Path,
    tmp_path: Path,
    received: RequestedSettings,
    path: str,
    body: dict[str, Any] | None,
    read: Callable[[Any], Any],
) -> None:
    with fake_host(home) as host:
        host.answers |= asyncio.run(answers(tmp_path))
        assert read(asyncio.run(_through(host, received)))
        assert host.received[-1][0] == path
        sent = host.received[-1][2]
        assert body is None or {name: sent[name] for name in body} == body


def test_a_refused_import_says_why(home: Path) -> None:
    problem = {"reason": "conflict", "message": "mine is there already.", "fix": {"text": "Rename it."}}
    with fake_host(home) as host:
        host.answers["POST /v1/presets/import"] = (409, {"error": problem})
        with pytest.raises(HostRefused) as caught:
            asyncio.run(_through(host, lambda client: client.import_preset(ImportPreset(text="x: 1"))))
    assert caught.value.problem.reason is Reason.CONFLICT


async def _through(host: FakeHost, received: RequestedSettings) -> Any:
    client = HostClient(str(host.folders.socket), TOKEN)
    try:
        return await received(client)
    finally:
        await client.close()
