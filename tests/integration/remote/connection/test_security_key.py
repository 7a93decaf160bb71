"""A security key, as the real ssh asks for one: its PIN is a question, its touch is nobody's to answer."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from engine_host.protocol.remote.hosts import RemoteHostState, SshQuestionKind
from tests.integration.host_process import SNDR, environment, serving, sndr
from tests.integration.remote.conftest import Fleet
from tests.integration.remote.machines import Machines
from tests.unit.asynchronous import run

Open = Callable[..., AbstractAsyncContextManager[Fleet]]
SOURCE = Path(__file__).with_name("fake_security_key.c")
PIN = "1234 $x"


@pytest.fixture
def touch(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The target takes a FAKE security key alone; the file by which it is touched."""
    compiler, provider = shutil.which("cc"), machines.folder / "fake_security_key.so"
    words = [str(compiler), "-shared", "-fPIC", "-o", str(provider), str(SOURCE), "-lcrypto"]
    if compiler is None or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("no compiler, or no headers of OpenSSL")
    touched = machines.folder / "touched"
    monkeypatch.setenv("FAKE_KEY_TOUCH", str(touched))
    monkeypatch.setenv("FAKE_KEY_PIN", PIN)
    return touched


def take_key(machines: Machines, *options: str) -> None:
    """Make a key of the FAKE device, and let the target take it alone."""
    provider, key = machines.folder / "fake_security_key.so", machines.folder / "device_key"
    words = ["ssh-keygen", "-q", "-t", "ed25519-sk", "-w", str(provider), "-N", "", "-f", str(key), *options]
    made = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"this OpenSSH makes no such key: {made.stderr}")
    (machines.folder / "authorized_keys").write_bytes(Path(f"{key}.pub").read_bytes())
    machines.write_config(key, more=f"Host *\n  SecurityKeyProvider {provider}\n")


def test_a_touch_is_waited_for_and_nobody_is_asked(fleet: Open, machines: Machines, touch: Path) -> None:
    take_key(machines)

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            question = await found.question()
            assert (question.kind, question.notice, question.secret) == (SshQuestionKind.CONFIRM, True, False)
            assert "Confirm user presence" in question.text
            shown = found.hosts.shown("gpu")
            assert shown.state is RemoteHostState.ASKING
            assert "Confirm user presence" in shown.sentence
            # Whoever closes the notice refuses nothing: the key is touched after it.
            await found.answer(question, accept=False)
            await asyncio.to_thread(touch.touch)
            await found.reach("gpu")
            assert not found.hosts.desk.waiting

    run(work())


def test_the_pin_is_asked_for_until_it_is_right(fleet: Open, machines: Machines, touch: Path) -> None:
    take_key(machines, "-O", "verify-required")

    async def work() -> None:
        async with fleet() as found:
            found.add("gpu", "direct")
            found.hosts.connect("gpu")
            await asyncio.to_thread(touch.touch)
            question = await found.question()
            assert (question.kind, question.secret, question.again) == (
                SshQuestionKind.PASSPHRASE,
                True,
                False,
            )
            assert "PIN" in question.text
            await found.answer(question, PIN)
            await found.reach("gpu")

    run(work())


def test_by_command_line_without_a_terminal_a_touch_is_enough(
    machines: Machines, touch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_key(machines)
    monkeypatch.setenv("SNDR_SSH_CONFIG", str(machines.config))
    with serving():
        assert sndr("host", "add", "gpu", "direct", "--agentless").code == 0
        words = [*SNDR, "host", "connect", "gpu"]
        said = []
        with subprocess.Popen(
            words, env=environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) as connecting:  # fmt: skip
            assert connecting.stderr is not None
            for line in connecting.stderr:
                said.append(line)
                if "Confirm user presence" in line:
                    touch.touch()
        assert connecting.returncode == 0, said
        assert any("Confirm user presence" in line for line in said)
        assert sndr("host", "disconnect", "gpu").code == 0
