"""Secrets are taken out of what is shown, and commands run nothing that a text says."""

import shlex
from collections.abc import Callable

import pytest

from engine_host.core.outside.secret_texts import HIDDEN, redacted
from engine_host.gateway.inspection.curl import curl_command
from engine_host.gateway.inspection.redaction import redacted_headers, secrets_of
from tests.hostile.effort import linear

KEY = "sk-proj-0123456789abcdefABCDEF"
BASE = "http://127.0.0.1:8020"
CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        f'{{"note": "my key is {KEY}."}}',
        f"Authorization: Bearer {KEY}",
        "Bearer 0123456789abcdef0123456789",
        '"api_key": "hunter22"',
        '{\\"password\\": \\"hunter22\\"}',
        "ghp_hunter220123456789abcdefABCDEF",
        "eyJhunter22aaa.eyJhunter22aaa.hunter22aaaa",
        "a-eyJhunter22aaa.eyJhunter22aaa.hunter22aaaa",
        "eyJ-eyJaaaaaaaa-eyJhunter22aaa.eyJhunter22aaa.hunter22aaaa",
        '{\\\\\\"password\\\\\\": \\\\\\"hunter22\\\\\\"}',
        "sndr-" + "hunter22" * 6,
        "password=hunter22",
        "export DB_PASSWORD='hunter22' && run",
        '{"content": "A=1\\nOPENAI_API_KEY=\\"hunter22\\"\\nB=2"}',
        "AWS_SECRET_ACCESS_KEY = hunter22/hunter22",
        "-----BEGIN RSA PRIVATE KEY-----\\nhunter22\\n-----END RSA PRIVATE KEY-----",
        "aws_secret_access_key = hunter22/hunter22",
        "secret=hunter22",
        "token = hunter22",
        "api_key=hunter22",
        "Password=hunter22",
        "password: hunter22",
        "DB_PASSWORD=ab$hunter22",
        "DB_PASSWORD=a,hunter22",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nhunter22\n-----END PGP PRIVATE KEY BLOCK-----",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4\nDEK-Info: AES-256\n\nhunter22\n-----END RSA",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter22",
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str) -> None:
    shown = redacted(text)
    assert HIDDEN in shown
    for secret in ("hunter22", "0123456789abcdef"):
        assert secret not in shown


@pytest.mark.parametrize(
    "text",
    [
        "a task-oriented risk-assessment",
        "sk-local",
        "the bearer of bad news",
        "next_token=self.read()",
        "token = next(tokens)",
        '{"token": "information", "logprob": -0.1}',
        '{"max_tokens": 4096, "prompt_tokens": 123456}',
        "MAX_TOKENS=4096 and TOKEN=$OTHER and password=(ask)",
        "-----BEGIN CERTIFICATE-----abc-----END CERTIFICATE-----",
    ],
)
def test_plain_words_stay(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "-eyJ",
        "-eyJaaaaaaaa",
        "-eyJaaaaaaaa.aaaaaaaa",
        "eyJaaaaaaaa.",
        "\\",
        '\\"',
        '"api_key\\',
        '"api_key" ',
        '"key":"',
        "bearer ",
        "bearer-",
        " ",
        "-sk-",
        "-sndr-",
        "_ghp_",
        "-AKIA",
        "-AIza",
        "TOKEN=",
        "password='",
        "PASSWORD",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "password: ",
        "token=a",
    ],
)
def test_no_text_takes_longer_than_its_length(piece: str) -> None:
    for around in (("", ""), ("bearer", "!"), ('"password"', "!"), ("-eyJaaaaaaaa.", "!")):
        before, after = around

        def act(size: int, before: str = before, after: str = after) -> Callable[[], object]:
            text = before + piece * (size // len(piece)) + after
            return lambda: redacted(text)

        linear(act, 4 << 10)


def test_headers_keep_their_names() -> None:
    headers = {
        "authorization": f"Bearer {KEY}",
        "x-api-key": KEY,
        "cookie": "a=b",
        "x-note": KEY,
        "x-app": "cli",
    }
    shown = dict(redacted_headers(headers))
    assert list(shown) == list(headers)
    assert (shown["x-app"], shown["x-note"]) == ("cli", HIDDEN)
    assert KEY not in repr(shown)
    assert "a=b" not in shown.values()
    assert secrets_of({"authorization": "Bearer plainsecret", "x-api-key": "short"}) == (b"plainsecret",)
    assert len(redacted_headers({f"x-{number}": "v" * 9000 for number in range(500)})) == 100


def test_what_cannot_be_written_surely_is_not_written() -> None:
    assert curl_command(BASE, CHAT, {}, b"no json") is None
    assert curl_command(BASE, "/v1/x'; touch pwned", {}, b"{}") is None
    assert curl_command("http://a b'", CHAT, {}, b"{}") is None
    whole = curl_command("https://[::1]:8020/llm", CHAT, {}, b"{}")
    assert whole is not None
    assert shlex.split(whole)[3] == "https://[::1]:8020/llm/v1/chat/completions"
