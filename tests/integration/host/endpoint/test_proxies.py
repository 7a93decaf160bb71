"""The endpoint behind a real nginx and a real Caddy with TLS, set up as docs/ENDPOINT.md says."""

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from engine_host.protocol.endpoint.requests import RequestQuery
from engine_host.protocol.engines import RequestState
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.settings import SettingsChange
from tests import certificates
from tests.integration.host.conftest import RunningHost, free_port, wait_for

DOCUMENT = (Path(__file__).resolve().parents[4] / "docs" / "ENDPOINT.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```\n(.*?)```", DOCUMENT.partition("## Behind a proxy")[2].partition("\n## ")[0], re.S)
NAME = "box.example.org"
CHAT: dict[str, Any] = {
    "model": "sndr-demo",
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "max_tokens": 3,
}
LONG = {**CHAT, "stream": True, "max_tokens": 900, "ignore_eos": True}


def nginx(folder: Path, host: RunningHost, port: int) -> list[str]:
    """Write nginx' configuration around the block of the document; return the command that runs it."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    assert program is not None, "apt-get install nginx (packaging/system-packages.txt names it)"
    certificate, key = certificates.write(folder)
    (block,) = (block for block in BLOCKS if "proxy_pass" in block)
    block = block.replace("127.0.0.1:8020", f"127.0.0.1:{host.port}")
    bare = f"location /bare/ {{ proxy_pass http://127.0.0.1:{host.port}/; proxy_set_header Host $host; }}"
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;\n"
        f"events {{}}\nhttp {{ access_log off;\n{paths}"
        f"server {{ listen 127.0.0.1:{port} ssl; server_name {NAME};\n"
        f"ssl_certificate {certificate}; ssl_certificate_key {key};\n{block}{bare}\n}}\n}}\n",
        encoding="utf-8",
    )
    return [program, "-p", str(folder), "-e", str(folder / "log"), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, host: RunningHost, port: int) -> list[str]:
    """Write a Caddyfile around the lines of the document; return the command that runs it."""
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("caddy is not installed (apt-get install caddy); not every release of Ubuntu has it")
    certificate, key = certificates.write(folder)
    (block,) = (block for block in BLOCKS if "reverse_proxy" in block)
    block = block.replace("127.0.0.1:8020", f"127.0.0.1:{host.port}")
    lines = block.replace(f"{NAME} {{\n", f"https://:{port} {{\nbind 127.0.0.1\ntls {certificate} {key}\n")
    bare = f"handle_path /bare/* {{\nreverse_proxy 127.0.0.1:{host.port}\n}}\n}}\n"
    options = f"{{\nadmin off\nauto_https off\nstorage file_system {folder}\n}}\n"
    caddyfile = folder / "Caddyfile"
    caddyfile.write_text(options + lines.rstrip().removesuffix("}") + bare, encoding="utf-8")
    return [program, "run", "--config", str(caddyfile), "--adapter", "caddyfile"]


@dataclass(frozen=True)
class Behind:
    """A host with an engine behind a proxy."""

    host: RunningHost
    url: str
    client: httpx.Client

    def state(self) -> RequestState:
        """Return the state of the newest request, as the host sees it."""
        return self.host.client.call(endpoint_ops.REQUESTS, RequestQuery()).requests[0].state


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def behind(request: pytest.FixtureRequest, host: RunningHost, tmp_path: Path) -> Iterator[Behind]:
    """Bring the host, its engine and the proxy up."""
    port = free_port()
    command = request.param(tmp_path, host, port)
    values = {"endpoint.path": "/llm", "endpoint.allowed_hosts": [NAME]}
    host.client.call(ops.CHANGE_SETTINGS, SettingsChange(values=values))
    host.start()
    with (
        (tmp_path / "said").open("wb") as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as proxy,
        httpx.Client(
            verify=certificates.trusting(), headers={"host": NAME}, trust_env=False, timeout=60
        ) as client,
    ):
        url = f"https://localhost:{port}/llm/v1"
        try:

            def answers() -> bool:
                assert proxy.poll() is None, (tmp_path / "said").read_text(encoding="utf-8")
                with contextlib.suppress(httpx.TransportError):
                    return client.get(f"{url}/models").status_code == 200
                return False

            wait_for(answers, "the proxy to pass requests on")
            yield Behind(host, url, client)
        finally:
            proxy.terminate()


def test_words_of_a_stream_come_while_it_is_written(behind: Behind) -> None:
    with behind.client.stream("POST", f"{behind.url}/chat/completions", json=LONG) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        for line in lines:
            if '"content":"' in line:
                break
        # The first of 900 tokens is here, and the engine writes on.
        assert behind.state() is RequestState.DECODE
        assert [line for line in lines if line][-1] == "data: [DONE]"
    assert behind.state() is RequestState.DONE


def test_a_client_that_leaves_ends_the_engines_work(behind: Behind) -> None:
    with behind.client.stream("POST", f"{behind.url}/chat/completions", json=LONG) as answer:
        assert answer.status_code == 200, answer.read()
        # Kept: an iterator that nobody holds is closed, and with it the answer.
        pieces = answer.iter_bytes()
        next(pieces)
        wait_for(lambda: behind.state() is RequestState.DECODE, "the request to be at work")
    wait_for(lambda: behind.state() is RequestState.CANCELLED, "the request to be cancelled")
    metrics = f"http://127.0.0.1:{behind.host.port}/metrics"

    def idle() -> bool:
        text = httpx.get(metrics, trust_env=False).text
        return bool(re.search(r"^llamacpp:requests_processing\{.*\} 0$", text, re.M))

    wait_for(idle, "the engine to have nothing to do")


def test_long_requests_pass_and_errors_stay_in_form(behind: Behind) -> None:
    pictures = {**CHAT, "metadata": {"picture": "x" * (8 << 20)}}
    assert behind.client.post(f"{behind.url}/chat/completions", json=pictures).status_code == 200
    unknown = behind.client.post(f"{behind.url}/chat/completions", json={**CHAT, "model": "nobody"})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")


def test_the_prefix_may_stay_or_be_taken_off(behind: Behind) -> None:
    through: Any = behind.client
    for base in (behind.url, behind.url.replace("/llm/", "/bare/")):
        client = openai.OpenAI(base_url=base, api_key="any", http_client=through, max_retries=0)
        assert [model.id for model in client.models.list()] == ["sndr-demo"]
        assert client.chat.completions.create(**CHAT).choices[0].message.content
    foreign = behind.client.get(f"{behind.url}/models", headers={"host": "evil.example"})
    assert foreign.status_code == 403
    assert json.loads(foreign.content)["error"]["code"]
