"""Agents, set up by `sndr connect`, finish a small task.

They are no part of this program, and each is tried where it is installed: `npm install --prefix FOLDER
@anthropic-ai/claude-code @openai/codex opencode-ai @continuedev/cli @github/copilot cline`, and
FOLDER/node_modules/.bin in PATH. aider: `pip install aider-chat` in an environment of its own, and the folder
of its program in PATH. The engine is scripted; all else is real.
"""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine_host.connect.change import propose, write
from engine_host.connect.clients.table import client_named
from engine_host.connect.facts import Facts
from engine_host.connect.machine import Machine
from engine_host.connect.records import Records
from engine_host.daemon.http_server import HttpServer
from engine_host.gateway import Gateway, Target, bind_endpoint
from engine_host.protocol.engines import RequestState
from tests.integration.gateway.scripted_engine import DONE, ScriptedEngine

PATIENCE = 120.0
TASK = "Write the word done into the file proof.txt."
CODEX = """# theirs
check_for_update_on_startup = false
[analytics]
enabled = false
"""
OPENCODE = '{ "autoupdate": false, "share": "disabled" } // theirs\n'


@dataclass(frozen=True)
class _One:
    target: Target

    def targets(self) -> tuple[Target, ...]:
        """The engine."""
        return (self.target,)

    def starting(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


@asynccontextmanager
async def scripted(home: Path) -> AsyncIterator[tuple[str, ScriptedEngine, Gateway]]:
    """A gateway in front of the scripted engine."""
    engine = ScriptedEngine(str(home / "engine.sock"))
    server = await asyncio.start_unix_server(engine.handle, engine.socket)
    target = Target("e1", "scripted", 4, 65_536, time.time(), socket=engine.socket, tools=True)
    gateway = Gateway(_One(target), lambda event: None)
    bound = bind_endpoint("127.0.0.1", 0)
    endpoint = HttpServer(gateway.app, bound.socket, name="endpoint")
    await endpoint.started()
    try:
        yield f"http://127.0.0.1:{bound.port}", engine, gateway
    finally:
        await gateway.aclose()
        await endpoint.close()
        server.close()
        os.unlink(engine.socket)
        await asyncio.sleep(0.02)


def installed(name: str) -> str:
    """The agent's program; the test is skipped where there is none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; it is no part of this program")
    return found


async def carried_out(argv: list[str], folder: Path, variables: dict[str, str]) -> str:
    """Run an agent in a folder and a home of its own; what it printed."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(folder), **variables}
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder / "work",
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        out, _ = await process.communicate()
        pytest.fail(f"{argv[0]} took too long: {out[-2000:]!r}")
    return out.decode("utf-8", "replace")


def set_up(name: str, folder: Path, url: str) -> None:
    """Write an agent's settings into its files, as `sndr connect NAME --write` does."""
    facts = Facts(f"{url}/v1", "scripted", 65_536, key_needed=False)
    records = Records(folder / "data")
    proposal = propose(client_named(name), Machine(folder / "home", "linux", {}), facts, records)
    assert write(proposal, records).done


def finished(
    name: str,
    arguments: list[str],
    home: Path,
    variables: dict[str, str],
    files: dict[str, str],
    said: str = DONE,
    *,
    program: str = "",
    first: list[str] | None = None,
    by_hand: bool = False,
) -> str:
    """Let an agent do the task; return what it printed.

    It has called its shell, read what that said, and been told the end. `{url}` in its words and variables is
    the endpoint's; `first` are the words of a command that sets it up; `by_hand` writes nothing for it.
    """
    program = installed(program or name)
    folder = home / name
    (folder / "work").mkdir(parents=True)

    async def go() -> str:
        async with scripted(home) as (url, engine, gateway):
            engine.said = said
            for path, text in files.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
            if not by_hand:
                set_up(name, folder, url)
            known = {key: value.format(url=url) for key, value in variables.items()}
            if first is not None:
                await carried_out([program, *(word.format(url=url) for word in first)], folder, known)
            out = await carried_out([program, *arguments], folder, known)
            assert (folder / "work" / "proof.txt").read_text() == "done\n", out[-2000:]
            assert DONE in out
            assert engine.received
            requests = gateway.request_log.requests()
            assert all(request.state is RequestState.DONE for request in requests), requests
            return out

    out = asyncio.run(go())
    # Agents leave locks of their own behind.
    shutil.rmtree(folder)
    return out


@pytest.mark.timeout(PATIENCE + 60)
def test_claude_code(home: Path) -> None:
    variables = {
        "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    finished("claude", ["-p", TASK, "--allowedTools", "Bash"], home, variables, {})


@pytest.mark.timeout(PATIENCE + 60)
def test_codex(home: Path) -> None:
    # The task is the script's own, so the agent needs no sandbox, which few machines have.
    arguments = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK]
    finished("codex", arguments, home, {}, {"home/.codex/config.toml": CODEX})


@pytest.mark.timeout(PATIENCE + 60)
def test_opencode(home: Path) -> None:
    variables = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    finished("opencode", ["run", TASK], home, variables, {"home/.config/opencode/opencode.json": OPENCODE})


@pytest.mark.timeout(PATIENCE + 60)
def test_continue(home: Path) -> None:
    config = "name: theirs\nversion: 1.0.0\nschema: v1\nmodels: []\n"
    variables = {"CONTINUE_TELEMETRY_ENABLED": "0", "CI": "1"}
    files = {"home/.continue/config.yaml": config}
    finished("continue", ["-p", TASK, "--auto"], home, variables, files, program="cn")


@pytest.mark.timeout(PATIENCE + 60)
def test_copilot(home: Path) -> None:
    # The command line; the one in VS Code has its own settings for an endpoint.
    variables = {
        "COPILOT_PROVIDER_BASE_URL": "{url}/v1", "COPILOT_PROVIDER_API_KEY": "any",
        "COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
    }  # fmt: skip
    finished("copilot", ["-p", TASK, "--allow-all-tools"], home, variables, {}, by_hand=True)


@pytest.mark.timeout(PATIENCE + 60)
def test_cline(home: Path) -> None:
    first = ["auth", "-p", "openai-compatible", "-k", "any", "-m", "scripted", "-b", "{url}/v1"]
    # Else it leaves a server of its own behind.
    variables = {"CLINE_TELEMETRY_DISABLED": "1", "CLINE_SESSION_BACKEND_MODE": "local"}
    finished("cline", ["--json", TASK], home, variables, {}, first=first, by_hand=True)


@pytest.mark.timeout(PATIENCE + 60)
def test_aider(home: Path) -> None:
    # It calls no tools: it reads in the answer what a file is to hold.
    said = f"{DONE}\n\nproof.txt\n```\ndone\n```\n"
    quiet = ["--analytics-disable", "--no-check-update", "--no-show-release-notes", "--no-browser"]
    arguments = ["--no-git", "--yes-always", *quiet, "--message", TASK, "proof.txt"]
    files = {"home/.aider.conf.yml": "# theirs\npretty: false\n", "work/proof.txt": ""}
    out = finished("aider", arguments, home, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}, files, said)
    assert "Unknown context window" not in out, "it has read the file with the model's context"
    assert "openai/scripted" in out
