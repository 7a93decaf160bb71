"""Checks that a GPU machine behind ssh feels like this one: a real sshd on loopback, a host in a second home.

usage: python packaging/gpu/over_ssh.py --installation VENV [--cpu] [--gpu N] [--streams N …] [--out FILE]

Facts and power limits beside what `nvidia-smi` says, agentless and by our host there; the bundled model
started there (k8v4, MTP 3), its ledger, GPU memory and series as they are told here; a chat through a route
of the endpoint here; `sndr bench endpoint --against` the endpoint there, which is what the way costs;
`kill -9` there told here; nothing stays. Power limits are read and never set. SSHD names another program
than /usr/sbin/sshd. Each row is printed as soon as it is known; the exit code is 1 when one failed.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import judge
import psutil
from host_under_test import HostUnderTest, alive, wait_for
from judge import HEADING, Row, Table

from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.remote_transfers import HOST_TELEMETRY
from engine_host.protocol.patches import EnginePatches
from engine_host.protocol.remote.hosts import RemoteFacts
from engine_host.protocol.remote.services import PowerPage
from engine_host.protocol.telemetry import TelemetryQuery

ROOT = Path(__file__).resolve().parents[2]
SSHD = os.environ.get("SSHD", "/usr/sbin/sshd")
QUERY = "index,uuid,name,memory.total,power.limit,power.default_limit,power.min_limit,power.max_limit"
K8V4 = ("kv_cache_dtype=turboquant_k8v4", "context=4096", "streams=64", "gpu_memory=0.4")
_PATIENCE = 420.0


@dataclass(frozen=True)
class Answer:
    """What a command of ours printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The last value that it printed. Raises RuntimeError when it failed."""
        if self.code != 0:
            raise RuntimeError(f"exit code {self.code}: {(self.out + self.err).strip()[-600:]}")
        return json.loads(self.out.strip().splitlines()[-1])


def free_port() -> int:
    """A TCP port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def sshd(folder: Path, far: Path) -> Iterator[Path]:
    """A real sshd with own keys, whose logins have the home `far`; the configuration that reaches it."""
    port = free_port()
    for key in ("host_key", "person_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)],
            check=True,
            capture_output=True,
        )
    public = (folder / "host_key.pub").read_text(encoding="utf-8").split()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n", encoding="utf-8")
    (folder / "authorized_keys").write_bytes((folder / "person_key.pub").read_bytes())
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {folder / 'host_key'}",
        f"AuthorizedKeysFile {folder / 'authorized_keys'}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        f"SetEnv HOME={far} SNDR_HOME={far} PATH={os.environ['PATH']} LD_LIBRARY_PATH={libraries}",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = folder / "ssh_config"
    config.write_text(
        f"Host gpu bare\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder / 'person_key'}\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder / 'known_hosts'}\n",
        encoding="utf-8",
    )
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def serves() -> bool:
        if process.poll() is not None:
            said = (folder / "sshd.log").read_text(errors="replace")
            raise RuntimeError(f"sshd did not start: {said[-600:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(serves, "sshd", 10.0)
        yield config
    finally:
        # Its sessions end with it; what they started is ended by who started it.
        process.kill()
        process.wait(10)


class OverSsh:
    """One run: this machine's host, and the same machine as another one behind ssh."""

    def __init__(self, asked: argparse.Namespace, table: Table, here: HostUnderTest, far: Path) -> None:
        self.asked = asked
        self.table = table
        self.here = here
        self.far = far
        self.results: dict[str, Any] = {}

    def sndr(self, *words: str, seconds: float = 120.0) -> Answer:
        """One command of this machine's, as a person would type it."""
        environment = {**os.environ, "SNDR_HOME": str(self.here.home), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "engine_host", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, env=environment,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)

    def there(self, *words: str, seconds: float = 120.0) -> Answer:
        """The same of the machine behind ssh."""
        return self.sndr("--host", "gpu", *words, seconds=seconds)

    # ------------------------------------------------------------------ what it is

    def agentless(self) -> Iterable[Row]:
        """A machine on which nothing of ours runs: facts, power limits and series."""
        part = "agentless"
        yield Row(part, "add", self.sndr("host", "add", "bare", "--agentless").code == 0, "sndr host add")
        began = time.monotonic()
        connected = self.sndr("host", "connect", "bare")
        found = f"after {time.monotonic() - began:.1f} s {connected.err.strip()[-300:]}"
        yield Row(part, "connect", connected.code == 0, found)
        yield from self.facts(part, "bare")
        yield from self.power(part, "bare")
        yield from self.series(part, "bare")

    def facts(self, part: str, name: str) -> Iterable[Row]:
        """GPUs, driver and holders, beside what the driver's own program says here."""
        # Others on this machine come and go: what was held before and after is compared.
        for _ in range(3):
            listed = {(row[0], int(row[1])) for row in smi_holders()}
            facts = RemoteFacts.model_validate(self.sndr("host", "probe", name, "--json").json())
            if held(facts) == listed:
                break
        asked = smi("driver_version")
        right = {row[0] for row in asked} == ({facts.driver} if facts.driver else set())
        yield Row(part, "driver", right, facts.driver or "none told")
        told = [(gpu.index, gpu.uuid, gpu.name, (gpu.memory_total or 0) >> 20) for gpu in facts.gpus]
        known = [(int(row[0]), row[1], row[2], int(row[3])) for row in smi(QUERY)]
        why = facts.no_gpu.message if facts.no_gpu else ""
        yield Row(part, "GPUs", told == known, f"{why}{told}")
        for gpu in facts.gpus:
            figures = (
                f"{(gpu.memory_used or 0) >> 20} MiB used, {gpu.power} of {gpu.power_limit} W, "
                f"{gpu.temperature} °C, {gpu.nvlinks} NVLinks, SM {gpu.capability}"
            )
            yield Row(part, f"GPU {gpu.index}", gpu.memory_used is not None, figures)
        names = ", ".join(f"{one.name} {(one.memory or 0) >> 20} MiB" for one in facts.holders)
        yield Row(part, "who holds memory", held(facts) == listed, names or "nobody")
        yield Row(part, "problems", None, json.dumps(facts.problems))
        machine = f"{facts.system}, {facts.cpus} × {facts.cpu}, {(facts.memory_total or 0) >> 30} GiB, "
        tools = ", ".join(sorted(facts.tools))
        yield Row(
            part, "machine", bool(facts.system and facts.cpus), f"{machine}Python {facts.python}; {tools}"
        )

    def power(self, part: str, name: str) -> Iterable[Row]:
        """Power limits with their bounds; nothing is set."""
        page = PowerPage.model_validate(self.sndr("host", "power", name, "--json").json())
        told = [(one.limit, one.default, one.minimum, one.maximum) for one in page.gpus]
        known = [tuple(watts(one) for one in row[4:8]) for row in smi(QUERY)]
        yield Row(part, "power limits", told == known, f"{told} permitted {page.permitted} {page.why}")

    def series(self, part: str, name: str) -> Iterable[Row]:
        """The graphs of a machine have its GPUs."""
        wanted = len(smi("index"))

        def known() -> set[str]:
            page = self.here.client.call(HOST_TELEMETRY, TelemetryQuery(), name=name)
            names = {one.name for one in page.series if one.at}
            return names if sum("gpu." in one for one in names) >= wanted else set()

        names = wait_for(known, "series of the GPUs", 40.0) if wanted else known()
        yield Row(part, "series", True, ", ".join(sorted(names)))

    # ------------------------------------------------------------------ our host there

    @contextmanager
    def host_there(self, config: Path) -> Iterator[None]:
        """This program's host, started there over ssh."""
        words = [sys.executable, "-P", "-m", "engine_host", "serve", "--port", str(free_port())]
        environment = f"cd {ROOT} && exec env PYTHONPATH={ROOT} "
        with (self.far / "serve.log").open("wb") as log:
            process = subprocess.Popen(
                ["ssh", "-F", str(config), "-T", "gpu", environment + " ".join(words)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)

    def connected(self) -> Iterable[Row]:
        """The same machine with our host: facts, power, what is there."""
        part = "engine host"
        yield Row(part, "add", self.sndr("host", "add", "gpu").code == 0, "sndr host add")
        connected = self.sndr("host", "connect", "gpu")
        yield Row(part, "connect", connected.code == 0, connected.err.strip()[-300:])

        def serves() -> dict[str, Any] | None:
            status = self.there("status", "--json")
            return status.json() if status.code == 0 else None

        status = wait_for(serves, "the host there", 60.0)
        gpus = [(one["index"], one["uuid"]) for one in status["host"]["gpus"]]
        known = [(int(row[0]), row[1]) for row in smi(QUERY)]
        yield Row(part, "status has its GPUs", gpus == known, str(gpus))
        yield from self.facts(part, "gpu")
        yield from self.power(part, "gpu")
        plan = self.sndr("host", "install", "gpu", "--dry-run", seconds=180.0)
        found = " / ".join((plan.out + plan.err).split("\n"))[:500]
        yield Row(part, "plan of an install there", None, f"exit code {plan.code}: {found}")

    def model(self) -> Iterable[Row]:
        """The bundled model on a GPU there, as this machine is told of it."""
        part = "model"
        words = ["run", "sndr-demo", "--engine", "vllm", "--installation", str(self.asked.installation)]
        words += ["--detach", "--json", "--set", "draft_tokens=3", "--speculation", "mtp"]
        settings = ("kv_cache_gib=1", "context=4096", "streams=8") if self.asked.cpu else K8V4
        words += [word for one in settings for word in ("--set", one)]
        if not self.asked.cpu:
            words += ["--set", "extra_arguments=--gdn-prefill-backend=triton", "--gpu", self.asked.gpu]
        began = time.monotonic()
        started = self.there(*words, seconds=_PATIENCE)
        found = (started.out + started.err).strip()[-300:] if started.code else ""
        yield Row(part, "ready", started.code == 0, f"after {time.monotonic() - began:.1f} s {found}")
        engine = self.there("status", "--json").json()["engines"][0]
        self.engine = engine
        self.table.attempt(part, "ledger", lambda: self.patches(part))
        self.table.attempt(part, "memory", lambda: self.memory(part))
        self.table.attempt(part, "chat", lambda: self.chat(part))
        self.table.attempt(part, "the way", lambda: self.way(part))
        self.table.attempt(part, "kill -9", lambda: self.killed(part))

    def patches(self, part: str) -> Iterable[Row]:
        """The ledger of there."""
        found = self.there("patches", "status", "--json").json()
        yield from judge.ledger(part, EnginePatches.model_validate(found))

    def memory(self, part: str) -> Iterable[Row]:
        """GPU memory by process and its parts, power and load, as they are told here."""
        top = self.there("top", "--once", "--json").json()
        gpus = top["host"]["gpus"] if "host" in top else top["gpus"]
        pids = {self.engine["pid"], *(one.pid for one in psutil.Process(self.engine["pid"]).children(True))}
        held = [(gpu["index"], one["pid"], one["memory"]) for gpu in gpus for one in gpu["holders"]]
        ours = [one for one in held if one[1] in pids]
        told = {(int(row[1]), int(row[2])) for row in smi_holders()}
        same = all((pid, (size or 0) >> 20) in told for _, pid, size in ours)
        yield Row(part, "memory by process", self.asked.cpu or bool(ours and same), str(ours))
        for gpu in gpus:
            figures = {name: gpu.get(name) for name in ("memory_used", "utilization", "power", "temperature")}
            yield Row(part, f"GPU {gpu['index']}", gpu["power"] is not None, json.dumps(figures))
        said = self.there("telemetry", "memory")
        yield Row(part, "memory by parts", said.code == 0, " / ".join(said.out.split("\n"))[:600])

    def chat(self, part: str) -> Iterable[Row]:
        """Asked at this machine's endpoint, answered there."""
        name = self.engine["name"]
        routed = self.sndr("routes", "set", "coder", f"gpu/{name}")
        yield Row(part, "a route leads there", routed.code == 0, routed.err.strip()[-300:])
        question = [{"role": "user", "content": "Write a function that adds two numbers"}]
        body = {"model": "coder", "messages": question, "temperature": 0, "max_tokens": 160}
        answer = self.here.ask("chat/completions", body)
        text = str(answer["choices"][0]["message"]["content"])
        yield Row(part, "a chat", "def " in text, " ".join(text.split())[:80])
        chunks = self.here.stream("chat/completions", body)
        streamed = "".join(
            choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
        )
        yield Row(part, "its stream says the same", streamed == text, f"{len(chunks)} chunks")
        yield Row(part, "nothing runs here", not self.here.client.call(ops.ENGINES).engines, "sndr status")

    def way(self, part: str) -> Iterable[Row]:
        """What the way through this machine costs, as `sndr bench endpoint` tells it."""
        port = self.there("status", "--json").json()["host"]["endpoint"]["port"]
        words = ["bench", "endpoint", "coder", "--against", f"http://127.0.0.1:{port}"]
        words += ["--against-model", self.engine["name"], "--repeats", "21", "--pairs", "31"]
        words += [word for one in self.asked.streams for word in ("--streams", one)]
        measured = self.sndr(*words, seconds=300.0)
        for line in measured.out.splitlines():
            print(f"  way: {line}", flush=True)
        self.results["way"] = measured.out
        # 1 says that a goal was missed or not decided, which is no failure of this check.
        yield Row(part, "the way was measured", measured.code in (0, 1), measured.err.strip()[-300:])

    def killed(self, part: str) -> Iterable[Row]:
        """`kill -9` of the engine there is told here, with its reason."""
        leader = psutil.Process(self.engine["pid"])
        family = [leader, *leader.children(recursive=True)]
        leader.kill()

        def told() -> dict[str, Any] | None:
            engines = self.there("status", "--json").json()["engines"]
            ended = [one for one in engines if one["id"] == self.engine["id"] and one["problem"]]
            return ended[0]["problem"] if ended else None

        problem = wait_for(told, "its end to be told", 60.0)
        yield Row(part, "kill -9 there is told", True, f"{problem['reason']}: {problem['message']}")
        wait_for(lambda: not alive(family), "its processes to end", 60.0)
        asked = self.sndr("chat", "Hello", "--model", "coder", "--json")
        yield Row(part, "a request says so", asked.code != 0, (asked.out + asked.err).strip()[-300:])

    def over(self) -> Iterable[Row]:
        """The end: our host there ends, the connections too, and no ssh stays."""
        part = "end"
        ended = self.there("quit")
        yield Row(part, "the host there ends", ended.code == 0, ended.err.strip()[-300:])
        for name in ("gpu", "bare"):
            gone = self.sndr("host", "remove", name)
            yield Row(part, f"{name} is forgotten", gone.code == 0, gone.err.strip()[-300:])
        host = psutil.Process(self.here.process.pid)
        left = [one.name() for one in host.children(recursive=True) if one.name() == "ssh"]
        yield Row(part, "no ssh stays", not left, str(left))


def held(facts: RemoteFacts) -> set[tuple[str, int]]:
    """GPU and process of each that holds memory, as a machine was read."""
    return {(one.gpu, one.pid) for one in facts.holders}


def smi(query: str) -> list[list[str]]:
    """What the driver's own program says of each GPU; nothing where there is none."""
    return _smi("--query-gpu=" + query)


def smi_holders() -> list[list[str]]:
    """UUID of the GPU, process and MiB of each that holds memory."""
    return _smi("--query-compute-apps=gpu_uuid,pid,used_memory")


def _smi(query: str) -> list[list[str]]:
    try:
        said = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return []
    return [[cell.strip() for cell in line.split(",")] for line in said.stdout.splitlines() if line.strip()]


def watts(cell: str) -> float | None:
    """A figure of the driver's program, None where it says that there is none."""
    try:
        return float(cell)
    except ValueError:
        return None


def main() -> int:
    """Run it, print the table, say how many rows failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--installation", type=Path, required=True, help="an environment with vLLM in it")
    parser.add_argument("--cpu", action="store_true", help="vLLM's CPU build: no TurboQuant")
    parser.add_argument("--gpu", default="0", help="the one that the model gets, by its number")
    parser.add_argument("--streams", action="append", help="of the way, at once; several times (1, 8)")
    parser.add_argument("--out", type=Path, help="where the rows are also written, as JSON")
    asked = parser.parse_args()
    asked.installation = asked.installation.absolute()
    asked.streams = asked.streams or ["1", "8"]
    table, began = Table(), time.monotonic()
    results: dict[str, Any] = {}
    print(HEADING, flush=True)
    # Short names: sockets lie below them.
    with (
        tempfile.TemporaryDirectory(prefix="sndr-k-") as keys,
        tempfile.TemporaryDirectory(prefix="sndr-f-") as far,
        sshd(Path(keys), Path(far)) as config,
    ):
        os.environ["SNDR_SSH_CONFIG"] = str(config)
        with HostUnderTest(_PATIENCE) as here:
            check = OverSsh(asked, table, here, Path(far))
            results = check.results
            table.attempt("agentless", "ran to its end", check.agentless)
            with check.host_there(config):
                for part in (check.connected, check.model, check.over):
                    table.attempt(part.__name__, "ran to its end", part)
    report = judge.as_json(table.rows, seconds=round(time.monotonic() - began), results=results)
    if asked.out:
        asked.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(f"\n{len(table.rows)} rows, {report['failed']} failed, {report['seconds']} s")
    return int(bool(report["failed"]))


if __name__ == "__main__":
    sys.exit(main())
