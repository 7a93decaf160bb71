"""`sndr connect` against a real host and the real llama.cpp with the bundled model."""

import json
from pathlib import Path

from engine_host.protocol.engine_settings.table import Overrides
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests.integration.host.conftest import RunningHost
from tests.integration.host_process import sndr

THEIRS = '{\r\n  // mine, with a byte order mark\r\n  "theme": "tokyonight",\r\n}\r\n'


def test_written_probed_and_put_back(host: RunningHost, tmp_path: Path) -> None:
    host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values={"endpoint.path": "/llm"}))
    engine = host.start(overrides=Overrides(context=4096, streams=2))
    theirs = tmp_path / ".config" / "opencode" / "opencode.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"\xef\xbb\xbf" + THEIRS.encode())
    mine = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "CODEX_HOME": "", "CLAUDE_CONFIG_DIR": ""}
    for client in ("opencode", "codex", "claude"):
        done = sndr("connect", client, "--write", "--probe", "--yes", "--json", file_limit=None, **mine)
        assert done.code == 0, done
        written, report = map(json.loads, done.out.splitlines())
        text = Path(written["files"][0]["path"]).read_text(encoding="utf-8-sig")
        assert f"http://127.0.0.1:{host.port}/llm" in text
        assert str(engine.context) in text
        steps = {step["name"]: step for step in report["steps"]}
        assert steps["models"]["outcome"] == steps["stream"]["outcome"] == "passed", report
        assert steps["tool call"]["outcome"] in {"passed", "unclear"}, report
        assert steps["cancel"]["outcome"] == "passed", report
        assert all(step["seconds"] > 0 for step in steps.values())
        listed = json.loads(sndr("connect", "--json", file_limit=None, **mine).out)
        entry = next(one for one in listed["clients"] if one["name"] == client)
        assert (entry["state"], entry["undo"]) == ("connected", True)
    for client in ("opencode", "codex", "claude"):
        assert sndr("connect", client, "--undo", file_limit=None, **mine).code == 0
    assert theirs.read_bytes() == b"\xef\xbb\xbf" + THEIRS.encode()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]
