"""Runs what is left to be measured on GPUs, one call of ten minutes after the other.

usage: python packaging/gpu/session.py VLLM FOLDER [--gpus N] [--seconds 560] [--only STEP …]
                                       [--check | --list]

VLLM is an environment with vLLM 0.32, FOLDER keeps every log and result. The steps are in order of worth. One
begins when its GPUs are free and its limit fits into what is left of the call; steps on other GPUs run beside
it. A step that was finished is not run again, so the next call is the same command. The end of a call is a
table of all steps; what each found is in FOLDER/STEP.log, its rows and results in FOLDER/STEP.json.
`--check` runs nothing: it has every program read its arguments, here and without a GPU. (docs/proof.md has
what was predicted; packaging/README.md how a machine is filled.)
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALL = 560.0
K8V4 = "turboquant_k8v4"
COMPILED = " --compile --profile"
# Programs of their own beside check.py, by the word that check.sh takes for them.
ALONE = ("over_ssh", "endpoint")
# Reads the arguments of the program that follows, and ends before it does anything.
ONLY_READ = """
import argparse, runpy, sys
read = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = lambda *words, **named: sys.exit(0 if read(*words, **named) else 1)
sys.path[:0] = ["packaging/gpu", "."]
program = runpy.run_module if sys.argv[1] == "-m" else runpy.run_path
sys.argv = sys.argv[2:] if sys.argv[1] == "-m" else sys.argv[1:]
program(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Step:
    """One measurement: arguments of `check.py` or of a module, its GPUs, and when it is ended, in seconds.

    `kv` of a module is that of the patches that it loads, `on` beside the default ones; None is stock vLLM.
    """

    name: str
    words: str
    seconds: int
    gpus: int = 1
    kv: str | None = None
    on: tuple[str, ...] = ()

    @property
    def of_product(self) -> bool:
        """True for a part of the whole product's check, which chooses its patches itself."""
        return not self.words.startswith("engine_host.")


def _speed(
    name: str,
    shape: str,
    cases: str,
    kv: str = "",
    gpus: int = 1,
    seconds: int = 300,
    on: tuple[str, ...] = (),
    more: str = "",
) -> Step:
    words = (
        f"engine_host.bench.gpu.vllm_speed {shape} --drafts 3 --cases {cases} --tensor-parallel {gpus}{more}"
    )
    return Step(name, f"{words} --kv {kv or 'auto'}", seconds, gpus, kv or None, on)


STEPS = (
    # With the kernels of version 15, which the whole product had not been started with.
    Step("product", "start restart", 300),
    Step("over-ssh", "over_ssh", 400),
    Step("endpoint", "endpoint", 400),
    # A hybrid on an H100: on an H200 it takes 0.87 of bf16's time a token, 0.85 compiled.
    _speed("27b-bf16", "qwen36-27b", "1x32768", more=COMPILED),
    _speed("27b-k8v4", "qwen36-27b", "1x32768 8x32768", K8V4, more=COMPILED),
    # The first start of other settings of a shape: its kernels are there, its graphs are not.
    Step("starts-7b", "starts --shape mimo-7b", 400),
)  # fmt: skip


@dataclass
class Running:
    """A step that is being run, on GPUs of its own."""

    step: Step
    process: subprocess.Popen[bytes]
    gpus: tuple[int, ...]
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.began


def command_of(step: Step, vllm: Path, folder: Path, gpus: Sequence[int]) -> list[str]:
    """The command of a step, as words."""
    program, *words = shlex.split(step.words)
    out = str(folder / f"{step.name}.json")
    if program == "conversations":
        return ["packaging/gpu/conversations.sh", str(vllm), str(folder / step.name), *words]
    if step.of_product:
        own = [word for gpu in gpus for word in ("--gpu", str(gpu))]
        if program == "llamacpp":
            source = str(folder / "llama.tar")
            return ["packaging/gpu/llamacpp.sh", source, *words, *own, "--out", out]
        return ["packaging/gpu/check.sh", str(vllm), program, *words, *own, "--out", out]
    return [str(vllm / "bin" / "python"), "-m", program, *words, "--out", out]


def environment_of(step: Step, host: Path, folder: Path, gpus: Sequence[int]) -> dict[str, str]:
    """The environment of a step: its GPUs, and patches if it calls vLLM itself. Raises CalledProcessError."""
    found = {**os.environ, "PYTHONUNBUFFERED": "1", "VLLM_CACHE_ROOT": str(folder / "cache")}
    found |= {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "VLLM_NO_USAGE_STATS": "1"}
    found.pop("PYTHONPATH", None)
    if step.of_product and not step.words.startswith("conversations"):
        return found
    found["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
    if step.kv is not None:
        script = [str(host), "packaging/gpu/overlay_variables.py", str(folder / f"{step.name}.overlay")]
        patches = [word for patch in step.on for word in ("--on", patch)]
        told = subprocess.run(
            [*script, "--kv", step.kv, *patches],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            env=found,
        )
        for line in told.stdout.splitlines():
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                found[name] = shlex.split(value)[0] if value else ""
    return found


def run(steps: Sequence[Step], vllm: Path, host: Path, folder: Path, gpus: int, seconds: float) -> None:
    """Run what fits into one call, the first that fit first; a step that takes too long is ended."""
    began = time.monotonic()
    waiting, running, free = list(steps), [], list(range(gpus))
    while waiting or running:
        left = seconds - (time.monotonic() - began)
        for step in list(waiting):
            if step.gpus > len(free) or step.seconds > left:
                continue
            waiting.remove(step)
            own, free = tuple(free[: step.gpus]), free[step.gpus :]
            with (folder / f"{step.name}.log").open("wb") as log:
                process = subprocess.Popen(
                    command_of(step, vllm, folder, own), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                    stderr=subprocess.STDOUT, env=environment_of(step, host, folder, own),
                    start_new_session=True,
                )  # fmt: skip
            running.append(Running(step, process, own))
            print(
                f"{step.name} begins on GPU {', '.join(map(str, own))}, at most {step.seconds} s", flush=True
            )
        if not running:
            return
        time.sleep(0.5)
        for one in list(running):
            if one.process.poll() is None and one.seconds < one.step.seconds:
                continue
            late = one.process.poll() is None
            # Whatever it started goes with it.
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(one.process.pid, number)
                    one.process.wait(10)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
            running.remove(one)
            free = sorted([*free, *one.gpus])
            code = "ended, it took too long" if late else f"exit code {one.process.wait()}"
            (folder / f"{one.step.name}.done").write_text(f"{code}, {one.seconds:.0f} s\n", encoding="utf-8")
            print(f"{one.step.name}: {code}, after {one.seconds:.0f} s", flush=True)


def table(steps: Sequence[Step], folder: Path) -> Iterator[str]:
    """Every step, what became of it, and the end of its log."""
    yield "| step | GPUs | limit, s | what became of it | last line |"
    yield "|---|---|---|---|---|"
    for step in steps:
        done, log = folder / f"{step.name}.done", folder / f"{step.name}.log"
        told = done.read_text(encoding="utf-8").strip() if done.is_file() else "not run"
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
        last = next((line for line in reversed(lines) if line.strip()), "").replace("|", "¦")
        yield f"| {step.name} | {step.gpus} | {step.seconds} | {told} | {last[:120]} |"


def check(steps: Sequence[Step], vllm: Path, host: Path, folder: Path) -> int:
    """Have each program read its arguments, and the patches of each step be chosen; how many could not."""
    wrong = 0
    for step in steps:
        program, *words = shlex.split(step.words)
        own = tuple(range(step.gpus))
        asked = command_of(step, vllm, folder, own)
        if program == "conversations":
            asked = ["-m", "engine_host.bench.gpu.prefix_conversations", "ask", "MODEL", "OUT", *words[2:]]
        elif program == "llamacpp":
            asked = ["packaging/gpu/llamacpp.py", "--folder", *asked[1:]]
        elif program in ALONE:
            asked = [f"packaging/gpu/{program}.py", "--installation", asked[1], *asked[3:]]
        elif step.of_product:
            asked = ["packaging/gpu/check.py", "--installation", *asked[1:]]
        else:
            asked = asked[1:]
        try:
            environment_of(step, host, folder, own)
            read = subprocess.run(
                [str(host), "-c", ONLY_READ, *asked], cwd=ROOT, capture_output=True, text=True, check=True
            )
            said = "arguments are read" + read.stdout
        except subprocess.CalledProcessError as error:
            wrong += 1
            said = f"WRONG: {error.stderr.strip().splitlines()[-1:]}"
        print(f"{step.name}: {said}; {shlex.join(command_of(step, vllm, folder, own))}")
    return wrong


def main() -> int:
    """Run a call's worth of steps, or check or list them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vllm", type=Path, help="an environment with vLLM, or its Python")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=CALL)
    parser.add_argument("--only", nargs="+", choices=[step.name for step in STEPS], metavar="STEP")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    vllm, folder = asked.vllm.absolute(), asked.folder.absolute()
    if vllm.parent.name == "bin":
        vllm = vllm.parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    steps = [step for step in STEPS if asked.only is None or step.name in asked.only]
    host = next(
        (one for one in (ROOT / ".venv/bin/python", ROOT / ".gpu-venv/bin/python") if one.exists()), None
    )
    if host is None:
        parser.error("there is no environment for the host: packaging/gpu/check.sh VLLM --help makes it")
    if asked.check:
        return min(check(steps, vllm, host, folder), 1)
    if not asked.list:
        open_steps = [step for step in steps if not (folder / f"{step.name}.done").exists()]
        run(open_steps, vllm, host, folder, asked.gpus, asked.seconds)
    print("\n".join(table(steps, folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
