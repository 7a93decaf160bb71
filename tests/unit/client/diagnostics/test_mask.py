"""Secrets and names are out of a report, wherever they stand, and what tells of an error stays."""

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

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
        (
            "d4:5d:64:aa:bb:cc and d4-5d-64-aa-bb-cd, d45d.64aa.bbce",
            "[address 1] and [address 2], [address 3]",
        ),
        ("enxd45d64aabbcc is up, ip-10-0-0-5.internal too", "[address 1] is up, [address 2].internal too"),
        ("a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:1a:2b:3c", "[address 1]"),
        (
            "connect to 2001:db8::7: refused, [2001:db8::7]:22",
            "connect to [address 1]: refused, [[address 1]]:22",
        ),
        (
            "::ffff:10.0.0.5, 10.0.0.5:8020 and 10.0.0.0/8",
            "::ffff:[address 1], [address 1]:8020 and [address 2]/8",
        ),
        ("vllm: 10.0.0.5 asked; version 10.0.0.5:80", "vllm: [address 1] asked; version [address 1]:80"),
        ("node-10.0.0.5 to 10.0.0.6-10.0.0.7", "node-[address 1] to [address 2]-[address 3]"),
        ("SHA256:" + "a" * 43, "[fingerprint 1]"),
        (
            "C:\\\\Users\\\\b0b\\\\x, C:\\Users\\b0b, /run/media/b0b/disk",
            "C:\\\\Users\\\\[user]\\\\x, C:\\Users\\[user], /run/media/[user]/disk",
        ),
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
        "CUDA 12.8.0.1, CUDA Version: 12.8.0.1, v12.8.0.1",
        "nvidia-cublas-cu12==12.8.4.1, curand 10.3.5.147, cuDNN version 9.10.2.21, driver 12.8.0.1",
        "nvidia_cublas_cu12-12.8.4.1-py3-none-manylinux_2_27_x86_64.whl, libcublas.so.12.8.4.1",
        "VBIOS 96.00.89.00.01",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 of m.gguf",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  model-00001-of-00002.safetensors",
        "commit 0c1e57098ab04c1e9b0d6a0a3fbd6b6f8e1f2a3b, build b6543, 1a2b3c4d-5e6f-7081-92a3-b4c5d6e7f809",
        "cache type_k = q8_0, KV q4_1, turboquant_3bit_nc, fp8_e4m3, --kv-cache-dtype fp8",
        "BOS token        = 151643 '<|endoftext|>', EOT token = 151645 '<|im_end|>'",
        "12.5 ms per token, 3 tokens",
        "hf_quantizer_config_of_the_model, fw_bwd_kernel, xai-org/grok-2, task-oriented, sk-local, r8_b4",
        "Basic information: keys: 3, cookies, password-less, authorized by nobody; passed: 12",
        "2025-11-24-12-30-55 at 00:01:02:03",
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


def test_what_counts_keys_and_tokens_is_told() -> None:
    counts = {"kv_bytes_per_token": 12288, "pad_token": 7, "cache_key": 3.5}
    assert mask().value(counts) == counts


def test_a_variable_that_names_a_place_takes_it_out_of_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("SSL_KEY", str(tmp_path))
    monkeypatch.setenv("DB_PWD", "geheim4711")
    shown = Mask.of_this_machine().text(f"{tmp_path}/x geheim4711")
    assert HIDDEN not in shown.partition(" ")[0]
    assert shown.endswith(HIDDEN)


def test_no_value_is_lost_where_two_names_become_one() -> None:
    assert mask().value({"10.0.0.1": 1, "[address 1]": 2}) == {"[address 1]": 1, "[address 1]'": 2}


def test_hosts_that_are_learnt_are_taken_out_from_then_on() -> None:
    learning = mask()
    assert learning.text("box9 answers") == "box9 answers"
    learning.know_hosts(["ops@box9.example.org", "10.1.2.3"])
    assert learning.text("box9 answers, box9.example.org too") == "[host] answers, [host] too"


def test_what_is_learnt_holds_for_what_was_seen_before() -> None:
    learning = mask()
    assert learning.text("Hunter22 of box9") == "Hunter22 of box9"
    learning.know_secrets(["Hunter22", "ab"])
    learning.know_users(["box9"])
    assert learning.text("Hunter22 of box9, ab") == "[redacted] of [user], ab"


@pytest.mark.parametrize(
    "name",
    [
        "deckbox",
        "ops@deckbox",
        "ssh://deckbox:2222",
        "ssh://ops@deckbox.example.org:2222",
        "https://deckbox.example.org/v1?x=1",
        "https://ops:word@deckbox.example.org:8443/v1",
        "deckbox.example.org:8020",
    ],
)
def test_a_host_is_known_by_any_way_to_write_it(name: str) -> None:
    learning = mask()
    learning.know_hosts([name])
    shown = learning.text("to DECKBOX, deckbox:22, http://deckbox.example.org/x and decKbox-2, by ops7")
    assert "deckbox" not in shown.lower()
    assert shown.endswith("by ops7")


def test_who_logs_in_is_known_with_the_host() -> None:
    learning = mask()
    learning.know_hosts(["kaetchen@deckbox", "git@github.com", "root@10.0.0.7"])
    assert learning.text("kaetchen, root and git at github.com") == "[user], root and git at github.com"


def test_a_name_that_is_a_word_is_a_name_in_a_path_alone() -> None:
    told = Mask(users=["max"], hosts=["ray"])
    assert told.text("/data/max/m.gguf of max, --max-model-len, ray.init") == (
        "/data/[user]/m.gguf of max, --max-model-len, ray.init"
    )


def test_a_secret_is_known_as_shells_addresses_and_json_write_it() -> None:
    learning = mask()
    secret = 'it\'s "a" b&c'
    learning.know_secrets([secret])
    for written in (secret, shlex.quote(secret), quote(secret, safe=""), json.dumps(secret)):
        assert HIDDEN in learning.text(f"x {written} y")
        assert "b&c" not in learning.text(f"x {written} y")


def test_of_variables_that_are_known_no_value_is_told() -> None:
    learning = mask()
    learning.know_variables(["MY_PIN", "WHO"])
    assert learning.text("sndr run m --env MY_PIN=12 --env 'WHO=a b' -x") == (
        f"sndr run m --env MY_PIN={HIDDEN} --env 'WHO={HIDDEN}' -x"
    )
    assert learning.value({"MY_PIN": 12, "WHO": "a b", "NOT_MY_PIN": "12"}) == {
        "MY_PIN": HIDDEN,
        "WHO": HIDDEN,
        "NOT_MY_PIN": "12",
    }


@pytest.mark.parametrize(
    "value",
    [
        {"accessToken": SECRET},
        {"clientSecret": 4711},
        {"credentials": {"user": SECRET}},
        {"headers": [["Cookie", SECRET]]},
        {"key": "HF_TOKEN", "value": SECRET},
        {"Set-Cookie": [SECRET]},
        {"DB_PASS": SECRET},
        {"argv": ["--password", SECRET]},
        {"argv": ["--apikey", SECRET]},
        {"argv": ["--api-keys", SECRET]},
        {"API_KEY_2": SECRET},
        {"api_key_old": SECRET},
        {"apiKey2": SECRET},
        {"HF_TOKEN_PROD": SECRET},
        {"GITHUB_PAT": SECRET},
        {"pat-2": SECRET},
    ],
)
def test_values_are_hidden_in_every_spelling_of_their_names(value: dict[str, object]) -> None:
    shown = json.dumps(mask().value(value))
    assert HIDDEN in shown
    assert SECRET not in shown
    assert "4711" not in shown


def test_names_that_are_like_those_of_secrets_tell_their_values() -> None:
    told = {"max_tokens_2": "many", "path": "x", "model_path_2": "x", "compat": "yes", "kv_key_2": 17}
    assert mask().value(told) == told
    text = (
        'max_tokens_2: 4096, path=models, {"compat_2": "yes"}, model_path=models, kv_token_2: 17, PATH_OLD=x'
    )
    assert mask().text(text) == text


PIECES = (
    *(
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
    ),
    *(
        "\x1b]",
        "key: ['",
        "token=[' ",
        "authorization: ",
        "cookie=",
        "'cookie': '",
        'password="a\\',
        'token: \\"',
    ),
    *(
        "-u a:",
        "machine a login b ",
        "Bearer ",
        "Basic a",
        "hooks.slack.com/services/",
        "#a",
        "_key=",
        "A_PASSWORD ",
    ),
    *(
        "ip-1-",
        "aa-bb-",
        "aaaa.",
        "SG.aaaaaaaaaaaaaaaa.",
        "-eyJaaaaaaaa",
        "::",
        "1.2.3.4 ",
        "version ",
        "/home/",
    ),
    *("A", "0", " ", "\\", '"', "=", "_pass", "-----BEGIN PRIVATE KEY-----", "123456789:AA"),
)


@pytest.mark.parametrize("piece", PIECES)
def test_no_text_takes_longer_than_it_is_long(piece: str) -> None:
    def act(size: int) -> Callable[[], object]:
        # The end of a key before it makes the lines before it be looked at.
        text = piece * (size // len(piece)) + "!\n-----END RSA PRIVATE KEY-----"
        return lambda: mask().text(text)

    linear(act, 1 << 10)


def test_of_lines_of_256_kb_the_dearest_takes_as_long_as_it_is_long() -> None:
    """Of all pieces the one that is dearest at 2 KB, and those that were ever dear."""

    def spent(piece: str) -> float:
        text = piece * ((2 << 10) // len(piece))
        at = time.thread_time()
        mask().text(text)
        return time.thread_time() - at

    for piece in {max(PIECES, key=spent), "key: ['"}:
        linear(
            lambda size, piece=piece: lambda: mask().text(piece * (size // len(piece))),  # type: ignore[misc]
            32 << 10,
        )


def test_nothing_that_is_left_steers_a_terminal() -> None:
    every = "".join(map(chr, range(0x100))) + "\u202e\u2028"
    assert control_characters(mask().text(every)) == set()
