"""Secrets and names are out of a report, wherever they stand, and what tells of an error stays."""

import json

import pytest

from engine_host.client.diagnostics.mask import Mask
from engine_host.core.outside.secret_texts import HIDDEN
from tests.hostile.effort import control_characters, linear

SECRET = "hunter22hunter22"


def mask() -> Mask:
    return Mask(
        home="/Users/maxine",
        users=["maxine", "Maxine Musterfrau", "root"],
        hosts=["tower7.lan", "localhost"],
        secrets=["correct-horse-battery", "short"],
    )


@pytest.mark.parametrize(
    "text",
    [
        f"key sk-{SECRET}",
        f"\x1b[32msk-{SECRET}\x1b[0m",
        f"\x1b]0;title\x07sk-{SECRET}",
        f"one\\nsk-{SECRET}",
        f"llama-server --api-key {SECRET} -m x",
        f"vllm serve --hf-token={SECRET}",
        f"['--api-key', '{SECRET}', '-m']",
        f"non-default args: {{'api_key': ['{SECRET}', '{SECRET}'], 'port': 1}}",
        f"'api_keys': ('{SECRET}',)",
        f"Authorization: Basic {SECRET}",
        f'"authorization": "{SECRET}"',
        f"GET /v1/models?key={SECRET}&x=1",
        f"https://person:{SECRET}@example.org/x",
        f"https://{SECRET}@example.org/x",
        f"HF_TOKEN={SECRET}",
        "the correct-horse-battery staple",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n-----END OPENSSH PRIVATE KEY-----",
        f"{SECRET}AAAA\n{SECRET}BBBB=\n-----END RSA PRIVATE KEY-----\nafter",
    ],
)
def test_secrets_are_taken_out_of_a_text(text: str) -> None:
    shown = mask().text(text)
    assert HIDDEN in shown
    assert SECRET not in shown
    assert "correct-horse" not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/Users/maxine/models/a.gguf", "~/models/a.gguf"),
        ("/Users/maxine2/a /home/b0b/b", "/Users/[user]/a /home/[user]/b"),
        ("/data/maxine/a, Maxine Musterfrau", "/data/[user]/a, [user]"),
        ("TOWER7 and tower7.lan:22, tower77", "[host] and [host]:22, tower77"),
        ("10.0.0.5 to 10.0.0.6 to 10.0.0.5", "[address 1] to [address 2] to [address 1]"),
        ("fe80::1ff:fe23:4567:890a%eth0, 2001:db8::7", "[address 1]%eth0, [address 2]"),
        ("d4:5d:64:aa:bb:cc", "[address 1]"),
        ("write to someone@example.org.", "write to [address 1]"),
        (
            "GPU-01234567-89ab-cdef-0123-456789abcdef is gone, GPU-01234567-89AB-cdef-0123-456789abcdef",
            "[GPU 1] is gone, [GPU 1]",
        ),
        ("\x1b[2J\x1b]52;c;aGk=\x07gone\x00", "gone\u2400"),
    ],
)
def test_names_and_addresses_are_taken_out(text: str, shown: str) -> None:
    assert mask().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "14:03:41 INFO root: vLLM 0.32.0 on localhost:8020, 127.0.0.1, ::1 and 0.0.0.0",
        "driver 580.65.06, CUDA 13.0, torch 2.9.1+cpu, std::vector, 00000000:01:00.0",
        "--max-tokens 4096 --tokenizer /models/x prompt_tokens: 17, eos token = 2",
        "error: key not found in file tokenizer.json; token '<eos>'",
    ],
)
def test_what_tells_of_an_error_stays(text: str) -> None:
    assert mask().text(text) == text


def test_values_are_hidden_by_their_names() -> None:
    shown = mask().value(
        {
            "argv": ["server", "--api-key", SECRET, "-m", "/Users/maxine/m.gguf"],
            "environment": {"HF_TOKEN": SECRET, "PGPASSWORD": SECRET, "PATH": "/usr/bin"},
            "settings": [{"name": "extra.api_key", "value": SECRET}, {"name": "context", "value": 4096}],
            "prompt_tokens": 17,
            "tokenizer": "x",
            "maxine": 1,
            "tower7": 2,
        }
    )
    text = json.dumps(shown)
    assert SECRET not in text
    assert "maxine" not in text
    assert shown["argv"] == ["server", "--api-key", HIDDEN, "-m", "~/m.gguf"]
    assert shown["environment"]["PATH"] == "/usr/bin"
    assert shown["settings"][1] == {"name": "context", "value": 4096}
    assert (shown["prompt_tokens"], shown["tokenizer"], shown["[user]"], shown["[host]"]) == (17, "x", 1, 2)


def test_no_value_is_lost_where_two_names_become_one() -> None:
    assert mask().value({"10.0.0.1": 1, "[address 1]": 2}) == {"[address 1]": 1, "[address 1]'": 2}


def test_hosts_that_are_learnt_are_taken_out_from_then_on() -> None:
    learning = mask()
    assert learning.text("box9 answers") == "box9 answers"
    learning.know_hosts(["ops@box9.example.org", "10.1.2.3"])
    assert learning.text("box9 answers, box9.example.org too") == "[host] answers, [host] too"


@pytest.mark.parametrize(
    "piece",
    [
        "--key ",
        "a-",
        "://a",
        "@a",
        "1.",
        "a:",
        "12:",
        "-----END PRIVATE KEY\n",
        "A" * 20 + "\n",
        "?key=",
        "\x1b[",
        "\x1b]",
    ],
)
def test_no_text_takes_longer_than_it_is_long(piece: str) -> None:
    linear(lambda size: lambda: mask().text(piece * size), 2_000)


def test_nothing_that_is_left_steers_a_terminal() -> None:
    every = "".join(map(chr, range(0x100))) + "\u202e\u2028"
    assert control_characters(mask().text(every)) == set()
