"""Our figures beside those of `vllm bench serve`, or of `guidellm`, in turns, in one run.

`python packaging/bench/agreement.py [--on-vllm | --paced | --url URL --model ID --tokenizer FOLDER]
[--guidellm PROGRAM] [--turns N]`. Both ask the same server for the same load. Without an address the real
llama.cpp server answers, with the bundled model; with --on-vllm the vLLM of `vllm bench serve`; with --paced
a server whose times are known, for a machine that is too busy for a real one. --guidellm is that tool in an
environment of its own. Turns go ours, theirs, theirs, ours …, so that a machine that drifts does so for
both. Exit code 1 where a median is more than 3 % apart and their interval leaves out 0; a load on which the
turns of one tool alone differ by more than that says so. A vLLM measures the same
requests too: each tool's means are divided by its, turn by turn, and what these shares differ by is a
difference of measuring, where the medians also differ by how the requests went.
"""

import argparse
import asyncio
import contextlib
import json
import os
import queue
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import guidellm_load
import httpx

from engine_host.bench.lab.load import client_of
from engine_host.bench.lab.running import LabRunning, carry_out
from engine_host.bench.lab.texts import Texts
from engine_host.bench.lab.workloads import Part, Workload, salt
from engine_host.core.paths import Folders
from engine_host.core.processes.own_programs import OwnProgram, command_of
from engine_host.protocol.bench.lab import (
    Figure,
    LabAsk,
    LabEngine,
    LabMachine,
    LabRun,
    Quantity,
    WorkloadName,
)

_MODEL = Path(__file__).parents[2] / "resources" / "models" / "sndr-demo"
_BOUND = 0.03
_SAMPLING = {"temperature": 0.0, "ignore_eos": True}
_QUANTITIES = (
    (Quantity.TTFT, "median_ttft_ms", 1000.0, "TTFT, ms"),
    (Quantity.ITL, "median_itl_ms", 1000.0, "ITL, ms"),
    (Quantity.TPOT, "median_tpot_ms", 1000.0, "TPOT, ms"),
    (Quantity.AGGREGATE, "output_throughput", 1.0, "tokens a second"),
)


_OWN = (
    ("ttft", "vllm:time_to_first_token_seconds", "TTFT"),
    ("itl", "vllm:inter_token_latency_seconds", "ITL"),
    ("e2el", "vllm:e2e_request_latency_seconds", "end to end"),
)
"""What vLLM measures of requests, as sums and counts, by the names of the other tool."""

PACED_FIRST, PACED_GAP = 0.25, 0.02
"""Seconds to the first token of a paced answer, and between two."""


@dataclass(frozen=True)
class Load:
    """So many requests at once, each of so many tokens in and out."""

    name: str
    at_once: int
    rounds: int
    tokens: int = 512
    answer: int = 128

    @property
    def part(self) -> Part:
        """The load as a part of a workload of ours; nothing is asked that does not count."""
        return Part(
            self.name,
            "What do these notes have in common?",
            max_tokens=self.answer,
            warm=0,
            measured=self.rounds,
            streams=self.at_once,
            variety=None,
            tokens=self.tokens,
        )


LOADS = (Load("one at a time", 1, 12), Load("4 at once", 4, 1))


@contextlib.contextmanager
def llama_server() -> Iterator[str]:
    """The real llama.cpp server with the bundled model; its address."""
    port = free_port()
    words = [*command_of(OwnProgram.LLAMA_SERVER), "--model", str(_MODEL / "sndr-demo-q8_0.gguf")]
    words += ["--alias", "sndr-demo", "--host", "127.0.0.1", "--port", str(port), "--ctx-size", "16384"]
    words += ["--parallel", "4", "--jinja", "--cache-ram", "0", "--threads", "1"]
    with answering(words, port) as url:
        yield url


@contextlib.contextmanager
def vllm_server(program: str) -> Iterator[str]:
    """The real vLLM with the bundled model and no cache of prompts; its address."""
    port = free_port()
    words = [program, "serve", str(_MODEL), "--served-model-name", "sndr-demo", "--max-model-len", "2048"]
    words += ["--max-num-seqs", "8", "--no-enable-prefix-caching", "--enforce-eager"]
    words += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    environment |= {"OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1"}
    with answering(words, port, environment) as url:
        yield url


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
    return found


@contextlib.contextmanager
def answering(words: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start a server on half of the processors and wait until it is healthy; its address.

    The tools have the other half from then on: one that needs more of a processor than the other would take
    it from the engine, and what both measure would be two servers.
    """
    processors = sorted(os.sched_getaffinity(0))
    its = set(processors[: max(1, len(processors) // 2)])
    os.sched_setaffinity(0, its)
    process = subprocess.Popen(
        words, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.sched_setaffinity(0, set(processors) - its or its)
    url = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/health", trust_env=False).is_success:
                    break
            time.sleep(0.1)
        else:
            sys.exit(f"{words[0]} ended with {process.returncode} before it was ready")
        yield url
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def paced_server() -> Iterator[str]:
    """A server whose tokens come by a schedule, each answer alike, whoever asks; its address.

    So what both tools have to find is known, and what a busy machine adds is small beside it.
    """
    ready: queue.Queue[int] = queue.Queue()
    loop = asyncio.new_event_loop()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if not head.startswith(b"POST "):
                    # It measures nothing of its own.
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                await paced(body, writer, head.split(b" ", 2)[1].decode())
        except (asyncio.IncompleteReadError, ConnectionError, IndexError):
            pass
        finally:
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.put(server.sockets[0].getsockname()[1])

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{ready.get()}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


async def paced(body: dict[str, object], writer: asyncio.StreamWriter, path: str) -> None:
    """Answer one request: the count of a text, or tokens by the schedule."""
    messages = body.get("messages")
    asked = str(messages[0]["content"]) if isinstance(messages, list) else ""
    count = len(asked.split()) + 9
    if not path.endswith("completions"):
        content = json.dumps({"count": count}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(content), content))
        return
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    most = int(str(body.get("max_tokens") or body.get("max_completion_tokens") or 16))
    began = asyncio.get_running_loop().time()

    def send(event: object) -> None:
        said = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
        writer.write(b"%x\r\n%s\r\n" % (len(said), said))

    for number in range(most):
        due = began + PACED_FIRST + number * PACED_GAP
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        send({"choices": [{"index": 0, "delta": {"content": f"word{number} "}}]})
        await writer.drain()
    send({"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": most}})
    send("[DONE]")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def ours(url: str, model: str, load: Load, folder: Path, seed: int) -> LabRun:
    """Measure with the bench lab."""
    engine = LabEngine(address=url, model=model)
    machine = LabMachine(program="", python="", system="")
    ask = LabAsk(workload=WorkloadName.QUICK, folder=str(folder), engine=engine, machine=machine)
    workload = Workload(WorkloadName.QUICK, (load.part,), sampling=dict(_SAMPLING))
    async with client_of(url) as client:
        (run,) = await carry_out([LabRunning(ask, engine, workload, client, seed)])
    return run


async def prompts(url: str, model: str, load: Load, seed: int) -> list[str]:
    """Return texts for the other tool: as ours, each with a salt of its own."""
    part = load.part
    async with client_of(url) as client:
        texts = Texts(client, model)
        made = []
        for number in range(load.at_once * load.rounds):
            salted = salt(seed, f"{load.name} of the other", number)
            made.append((await texts.text(salted, part.question, load.tokens)).content)
    return made


def theirs(
    program: str, url: str, model: str, tokenizer: str, load: Load, texts: Sequence[str], folder: Path
) -> dict[str, float] | None:
    """Measure with `vllm bench serve`; its own summary, None where a request of it failed."""
    data = folder / "prompts.json"
    # Its own kinds of files need pandas, which vLLM's CPU build comes without.
    data.write_text(json.dumps([{"conversations": [{"value": text}, {"value": "-"}]} for text in texts]))
    words = [program, "bench", "serve", "--backend", "openai-chat", "--base-url", url]
    words += ["--endpoint", "/v1/chat/completions", "--model", model, "--tokenizer", tokenizer]
    words += ["--dataset-name", "sharegpt", "--dataset-path", str(data), "--sharegpt-output-len"]
    words += [str(load.answer), "--num-prompts", str(len(texts)), "--max-concurrency", str(load.at_once)]
    # Nothing is asked that does not count, so that the engine's own measures are of the same requests.
    words += ["--num-warmups", "0", "--ready-check-timeout-sec", "0", "--ignore-eos", "--temperature", "0"]
    # A connection of its own each, as ours: llama.cpp's server closes a kept one as the next request comes.
    words += ["--header", "Connection=close"]
    words += ["--extra-body", json.dumps({"cache_prompt": False})]
    words += ["--disable-tqdm", "--save-result", "--result-dir", str(folder)]
    words += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--result-filename", "result.json"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "NO_PROXY": "*"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"vllm bench serve ended with {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads((folder / "result.json").read_text())
    if found["completed"] == len(texts):
        return found
    print(
        f"vllm bench serve: {found['completed']:.0f} of {len(texts)} requests were answered", file=sys.stderr
    )
    return None


def own_totals(url: str) -> dict[str, float]:
    """Return the sums and counts of what a vLLM measured so far; nothing of another server."""
    known = {name for _, name, _ in _OWN}
    found: dict[str, float] = {}
    for line in httpx.get(f"{url}/metrics", trust_env=False, timeout=30).text.splitlines():
        name = line.partition("{")[0]
        if name.removesuffix("_sum").removesuffix("_count") in known:
            found[name] = found.get(name, 0.0) + float(line.rpartition(" ")[2])
    return found


def shares_of_own(
    means: Mapping[str, float], before: Mapping[str, float], after: Mapping[str, float]
) -> dict[str, float]:
    """Return a tool's means (seconds) by those that the vLLM measured between two readings."""
    found = {}
    for key, name, _ in _OWN:
        count = after.get(f"{name}_count", 0.0) - before.get(f"{name}_count", 0.0)
        if count:
            found[key] = means[key] * count / (after[f"{name}_sum"] - before.get(f"{name}_sum", 0.0))
    return found


def our_means(run: LabRun) -> dict[str, float]:
    """Return the means of our samples, in seconds; of ITL that of all tokens, also of those without text.

    A token that is half a letter arrives with no text, and is no arrival of a sample.
    """
    told = [one for one in run.samples if one.first is not None and one.last is not None and one.tokens]
    return {
        "ttft": statistics.fmean([one.first or 0.0 for one in told]),
        "itl": sum((one.last or 0.0) - (one.first or 0.0) for one in told)
        / sum((one.tokens or 0) - 1 for one in told),
        "e2el": statistics.fmean([one.total for one in run.samples]),
    }


def print_shares(shares: Mapping[str, Sequence[Mapping[str, float]]]) -> bool:
    """Print each tool's means by the engine's; True where these are further apart than they may be."""
    apart = False
    for key, _, title in _OWN:
        columns = [[one[key] for one in shares[side] if key in one] for side in ("ours", "theirs")]
        if all(columns):
            first, second = (statistics.median(column) for column in columns)
            spread = ", ".join(f"{min(column):.3f} to {max(column):.3f}" for column in columns)
            beyond = abs(first / second - 1) > _BOUND
            apart |= beyond
            note = "APART" if beyond else ""
            share = 100 * (first / second - 1)
            print(f"{title + ' / engine':18}{first:10.3f}{second:10.3f}{share:+8.1f}%   {spread}  {note}")
    return apart


def value_of(run: LabRun, load: Load, quantity: Quantity) -> float | None:
    """Return our median, None where it is n/a; one at a time all tokens over the seconds of all answers."""
    figures: dict[Quantity, Figure] = {one.quantity: one for one in run.parts[0].figures}
    if quantity is Quantity.AGGREGATE and load.at_once == 1:
        asked = [sample for sample in run.samples if not sample.warm]
        return sum(sample.tokens or 0 for sample in asked) / sum(sample.total for sample in asked)
    if figures[quantity].value is None:
        print(f"{quantity} could not be told: {figures[quantity].why}", file=sys.stderr)
    return figures[quantity].value


def main() -> int:
    """Measure both in turns and print both columns; 1 where they are further apart than 3 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = sorted((Folders.resolve().cache / "vllm-environments").glob("*/bin/vllm"))
    parser.add_argument("--vllm", default=str(known[-1]) if known else shutil.which("vllm"))
    parser.add_argument("--url")
    parser.add_argument("--model", default="sndr-demo")
    parser.add_argument("--tokenizer", default=str(_MODEL))
    parser.add_argument("--on-vllm", action="store_true", help="the other tool's own vLLM answers")
    parser.add_argument("--paced", action="store_true", help="a server whose tokens come by a schedule")
    parser.add_argument("--guidellm", metavar="PROGRAM", help="the other tool, instead of vLLM's")
    parser.add_argument("--turns", type=int, default=4, help="of each tool and load")
    asked = parser.parse_args()
    if asked.vllm is None and asked.guidellm is None:
        print("no vllm program was found, so there is nothing to agree with", file=sys.stderr)
        return 0
    with contextlib.ExitStack() as stack:
        url = asked.url or stack.enter_context(server_of(asked))
        if asked.paced:
            print(f"paced: TTFT {1000 * PACED_FIRST:.0f} ms, ITL {1000 * PACED_GAP:.0f} ms")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sndr-agree-")))
        apart = False
        for load in LOADS:
            apart |= compared(asked, url, load, folder)
    return 1 if apart else 0


def of_other(
    asked: argparse.Namespace, url: str, load: Load, texts: Sequence[str], folder: Path
) -> dict[str, float] | None:
    """Measure with the other tool that was chosen; None where a request of it failed."""
    if asked.guidellm is None:
        return theirs(asked.vllm, url, asked.model, asked.tokenizer, load, texts, folder)
    return guidellm_load.asked(
        asked.guidellm, url, asked.model, asked.tokenizer, load.at_once, load.answer, texts, folder
    )


def server_of(asked: argparse.Namespace) -> contextlib.AbstractContextManager[str]:
    """Return the server that was chosen."""
    if asked.on_vllm:
        return vllm_server(asked.vllm)
    return paced_server() if asked.paced else llama_server()


def compared(asked: argparse.Namespace, url: str, load: Load, folder: Path) -> bool:
    """Measure one load in turns and print it; True where the tools are further apart than they may be.

    A turn that does not count warms the server up.
    """
    asyncio.run(ours(url, asked.model, load, folder, secrets.randbits(32)))
    found: dict[str, list[dict[Quantity, float | None]]] = {"ours": [], "theirs": []}
    shares: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
    for turn in range(asked.turns):
        for side in ("ours", "theirs") if turn % 2 == 0 else ("theirs", "ours"):
            seed = secrets.randbits(32)
            print(f"{load.name}: {side}, turn {turn + 1} of {asked.turns}", file=sys.stderr)
            before = own_totals(url)
            if side == "ours":
                run = asyncio.run(ours(url, asked.model, load, folder, seed))
                values = {one: value_of(run, load, one) for one, *_ in _QUANTITIES}
                means = our_means(run)
            else:
                said = None
                while said is None:
                    texts = asyncio.run(prompts(url, asked.model, load, seed))
                    said = of_other(asked, url, load, texts, folder)
                    seed += 1
                values = {
                    one: said[name] / scale if name in said else None for one, name, scale, _ in _QUANTITIES
                }
                means = {key: said[f"mean_{key}_ms"] / 1000 for key, *_ in _OWN}
            shares[side].append(shares_of_own(means, before, own_totals(url)))
            found[side].append(values)
    print(f"\n{load.name}: {load.tokens} tokens in, {load.answer} out, medians of {asked.turns} turns")
    print(f"{'':18}{'ours':>10}{'theirs':>10}{'apart':>9}   turns of ours, turns of theirs")
    apart = False
    for quantity, _, scale, name in _QUANTITIES:
        columns = [
            [told * scale for values in found[side] if (told := values[quantity]) is not None]
            for side in ("ours", "theirs")
        ]
        if not all(columns):
            shown = [f"{statistics.median(one):.2f}" if one else "n/a" for one in columns]
            print(f"{name:18}{shown[0]:>10}{shown[1]:>10}   not told by both")
            continue
        first, second = (statistics.median(column) for column in columns)
        share = first / second - 1
        spread = ", ".join(f"{min(column):.2f} to {max(column):.2f}" for column in columns)
        noisy = max((max(column) - min(column)) / statistics.median(column) for column in columns)
        overlap = min(columns[0]) <= max(columns[1]) and min(columns[1]) <= max(columns[0])
        beyond = abs(share) > _BOUND and not overlap
        apart |= beyond
        note = "APART" if beyond else "too noisy to tell" if abs(share) > _BOUND else ""
        if noisy > 10 * _BOUND:
            note = (note + " (a busy machine)").strip()
        print(f"{name:18}{first:10.2f}{second:10.2f}{100 * share:+8.1f}%   {spread}  {note}")
    measured = print_shares(shares)
    return measured if shares["ours"][0] else apart


if __name__ == "__main__":
    sys.exit(main())
