"""Real sshd on loopback, with keys, known hosts, a configuration and a second home of their own.

`target` is reached as `direct`, or as `gpu` through the jump host. Their home is `far`, which is SNDR_HOME
there too: an engine host that is started over ssh keeps to it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from engine_host.client.sync import wait_for_host
from engine_host.core.paths import Folders
from tests.conftest import SHARED_CACHE

SSHD = "/usr/sbin/sshd"
_MARK = "SNDR_TEST_SSHD"


def free_port() -> int:
    """A TCP port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Sshd:
    """One sshd; it may be stopped, frozen and started again on the same port.

    What is `over` a file of the system is there for this sshd alone, in a mount namespace of its own. Its
    home is `far` unless `own_home` is False: then it is that of the user.
    """

    name: str
    folder: Path
    far: Path
    port: int = field(default_factory=free_port)
    extra: tuple[str, ...] = ()
    address: str = "127.0.0.1"
    variables: tuple[str, ...] = ()
    over: Mapping[Path, Path] = field(default_factory=dict)
    own_home: bool = True
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def host_key(self) -> Path:
        """The private key of this machine."""
        return self.folder / f"{self.name}_host_key"

    @property
    def log(self) -> Path:
        """The file that sshd writes to."""
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start it, with a key of its own."""
        if not self.host_key.exists():
            make_key(self.host_key)
        config = self.folder / f"{self.name}_config"
        homes = (f"HOME={self.far}", f"SNDR_HOME={self.far}") if self.own_home else ()
        own = (*homes, f"SNDR_CACHE={SHARED_CACHE}")
        lines = [
            f"Port {self.port}",
            f"ListenAddress {self.address}",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}",
            # The first value of a word holds.
            *self.extra,
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "Subsystem sftp internal-sftp",
            f"SetEnv {' '.join((*self.variables, *own))}",
        ]
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SNDR_", "SSH_"))}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._apart(), SSHD, "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**kept, _MARK: str(self.folder)},
                start_new_session=True,
            )
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port)):
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"sshd did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)

    def _apart(self) -> list[str]:
        if not self.over:
            return []
        mounts = "".join(f"mount --bind {own} {place} && " for place, own in self.over.items())
        return ["unshare", "--mount", "sh", "-c", f'{mounts}exec "$@"', "sh"]

    def processes(self) -> list[psutil.Process]:
        """It, and those that serve its connections."""
        if self._process is None or self._process.poll() is not None:
            return []
        main = psutil.Process(self._process.pid)
        return [main, *main.children(recursive=True)]

    def signal(self, number: int) -> None:
        """Send a signal to all of its processes."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def stop(self) -> None:
        """Kill it with all of its connections; what they started goes on."""
        sessions = self.processes()
        for process in sessions:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "sshd" or process.pid == (self._process and self._process.pid):
                    process.send_signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)
        self._process = None


@dataclass
class Machines:
    """A target and a jump host, and the configuration by which ssh reaches them."""

    folder: Path
    far: Path
    target: Sshd
    jump: Sshd

    @property
    def config(self) -> Path:
        """The configuration of ssh."""
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """The file of known hosts."""
        return self.folder / "known_hosts"

    @property
    def key(self) -> Path:
        """The key of the person, without a passphrase."""
        return self.folder / "person_key"

    def environment(self) -> dict[str, str]:
        """The environment of a program that is to use these machines."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")}
        return {**kept, "SNDR_SSH_CONFIG": str(self.config)}

    def know(self, *machines: Sshd) -> None:
        """Note the host keys of machines as known."""
        lines = []
        for machine in machines:
            public = Path(f"{machine.host_key}.pub").read_text(encoding="utf-8").split()
            lines.append(f"[127.0.0.1]:{machine.port} {public[0]} {public[1]}\n")
        self.known_hosts.write_text("".join(lines), encoding="utf-8")

    def fingerprint(self, machine: Sshd) -> str:
        """The fingerprint of a machine's host key."""
        told = subprocess.run(
            ["ssh-keygen", "-lf", f"{machine.host_key}.pub"], capture_output=True, text=True, check=True
        )
        return told.stdout.split()[1]

    @contextmanager
    def engine_host(
        self, *arguments: str, python: str = sys.executable
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """An engine host of the target's user, started over ssh; it ends with this."""
        words = [python, "-P", "-m", "engine_host", "serve", "--port", str(free_port()), *arguments]
        with (self.folder / "engine_host.log").open("ab") as log:
            process = subprocess.Popen(
                ["ssh", "-F", str(self.config), "-T", "direct", "exec", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment(),
            )
        try:
            client = wait_for_host(self.far_folders, 60.0, lambda: process.poll() is not None)
            assert client is not None, (self.folder / "engine_host.log").read_text(errors="replace")
            client.close()
            yield process
        finally:
            self.end_engine_host()
            process.terminate()
            process.wait(10)

    @property
    def far_folders(self) -> Folders:
        """The folders of the engine host there."""
        return Folders.resolve({"SNDR_HOME": str(self.far)})

    def end_engine_host(self, number: int = signal.SIGTERM) -> None:
        """End the engine host there, in order or by force."""
        owner = self.far_folders.read_lock_owner()
        if owner is None:
            return
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(owner.pid)
            if f"SNDR_HOME={self.far}" in Path(f"/proc/{owner.pid}/environ").read_text(errors="replace"):
                found.send_signal(number)
                found.wait(30)

    def lock_key(self, passphrase: str) -> None:
        """Let the machines know only a key that this passphrase opens."""
        locked = self.folder / "locked_key"
        make_key(locked, passphrase)
        (self.folder / "authorized_keys").write_bytes(Path(f"{locked}.pub").read_bytes())
        self.write_config(locked)

    def ask_for_password(self, password: str, *, interactive: bool) -> bool:
        """Let the target take this password of root, and nothing else; False where that cannot be had here.

        The system's own files stay as they are. `interactive` is the keyboard-interactive login, through PAM.
        """
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
            return False
        shadow, pam = self.folder / "shadow", self.folder / "pam"
        words = ["openssl", "passwd", "-6", "-stdin"]
        hashed = subprocess.run(words, input=password, capture_output=True, text=True, check=True).stdout
        shadow.write_text(f"root:{hashed.strip()}:20000:0:99999:7:::\nsshd:!:20000::::::\n", encoding="utf-8")
        shadow.chmod(0o600)
        pam.write_text(
            "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n",
            encoding="utf-8",
        )
        self.target.over = {Path("/etc/shadow"): shadow}
        self.target.extra = ("PubkeyAuthentication no", "PasswordAuthentication yes")
        if interactive:
            if not Path("/etc/pam.d/sshd").exists():
                return False
            self.target.over = {**self.target.over, Path("/etc/pam.d/sshd"): pam}
            self.target.extra = ("PubkeyAuthentication no", "UsePAM yes", "KbdInteractiveAuthentication yes")
        self.target.stop()
        self.target.start()
        config = self.config.read_text(encoding="utf-8")
        ways = "  PreferredAuthentications password,keyboard-interactive\n"
        self.config.write_text(config.replace("  PasswordAuthentication no\n", ways), encoding="utf-8")
        return True

    def write_config(self, key: Path | None = None, *, more: str = "") -> None:
        """Write the configuration; `key` is the one that is offered."""
        common = (
            "  HostName 127.0.0.1\n  User root\n  IdentitiesOnly yes\n"
            f"  IdentityFile {key or self.key}\n  UserKnownHostsFile {self.known_hosts}\n"
            "  GlobalKnownHostsFile /dev/null\n  UpdateHostKeys no\n  PasswordAuthentication no\n"
        )
        self.config.write_text(
            f"Host direct\n  Port {self.target.port}\n{common}"
            f"Host gpu\n  Port {self.target.port}\n  ProxyJump jump\n{common}"
            f"Host jump\n  Port {self.jump.port}\n{common}{more}",
            encoding="utf-8",
        )


@contextmanager
def small_disk(folder: Path, megabytes: int = 60, how: str = "exec") -> Iterator[Path]:
    """A disk of so many MB at a folder, mounted so, which goes again."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,{how}", "tmpfs", folder], check=False
    )
    if mounted.returncode:
        pytest.skip("this user may mount no disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path, *, leaving: int) -> Path:
    """Fill the disk of a folder up to `leaving` bytes; the file that does."""
    about = os.statvfs(folder)
    path = folder / "somebody else's"
    with path.open("wb") as file:
        for _ in range((about.f_bavail * about.f_frsize - leaving) >> 20):
            file.write(bytes(1 << 20))
    return path


def make_key(path: Path, passphrase: str = "") -> None:
    """Make a key without asking for anything."""
    path.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def running_machines() -> Iterator[Machines]:
    """The machines, up and known; at the end nothing of them is left."""
    Path("/run/sshd").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="sndr-s-"))
    far = folder / "far"
    far.mkdir()
    target, jump = Sshd("target", folder, far), Sshd("jump", folder, far)
    machines = Machines(folder, far, target, jump)
    try:
        make_key(machines.key)
        (folder / "authorized_keys").write_bytes(Path(f"{machines.key}.pub").read_bytes())
        target.start()
        jump.start()
        machines.know(target, jump)
        machines.write_config()
        yield machines
    finally:
        for sshd in (target, jump):
            sshd.signal(signal.SIGCONT)
            sshd.stop()
        _end_marked(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _end_marked(folder: Path) -> None:
    """End what was started over these machines and is still there."""
    mark = f"{_MARK}={folder}"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environ = Path(f"/proc/{process.pid}/environ").read_bytes().decode(errors="replace").split("\0")
            if mark in environ or f"SNDR_HOME={folder / 'far'}" in environ:
                process.kill()
