"""The places of secrets in a text that goes into a report: one table, each row with examples."""

import re
from dataclasses import dataclass

from engine_host.core.outside.secret_texts import HIDDEN


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A pattern of a secret with what stands before it, which is group 1 and stays."""

    name: str
    pattern: re.Pattern[str]
    examples: tuple[str, ...]

    def without(self, text: str) -> str:
        """Return the text without such secrets."""
        return self.pattern.sub(_hidden, text)


PLANTED = "pl4ntedW0rd"
"""The secret of every example."""


_OPENING = re.compile(r"\\{0,7}[\"']")


def _hidden(found: re.Match[str]) -> str:
    """Return what stands before the secret with a mark in its place, in the quotes that it stood in."""
    value = found[0][len(found[1]) :]
    opening = opened[0] if (opened := _OPENING.match(value)) else ""
    closed = bool(opening) and len(value) > len(opening) and value[-1] == opening[-1]
    return f"{found[1]}{opening}{HIDDEN}{opening[-1] if closed else ''}"


def _row(name: str, pattern: str, *examples: str, flags: int = re.IGNORECASE) -> SecretRow:
    return SecretRow(name, re.compile(pattern, flags), examples)


# Every pattern either takes what it passes or gives up within a fixed number of letters: a report is made of
# logs, and somebody else decides what stands in them.
SUFFIX = r"(?:[-_]?(?:\d{1,3}|old|new|prod|dev))?"
"""The end of a name that tells one secret from another of its kind: API_KEY_2."""
_STRONG = (
    r"(?:pass(?:word|wd|phrase|code)|secrets?|credentials?|auth[-_]?token|(?:access|refresh|session|bearer)[-_]?token"
    r"|(?:api|access|private|account|secret|subscription|master|signing|encryption|session)[-_ ]?keys?"
    r"|session[-_]?id|(?<=_)pass|(?<=_)pwd|(?<=_)pat|_auth)"
)
_WEAK = r"(?:(?<=[A-Za-z0-9_.-])(?:key|token)|(?<![A-Za-z0-9])token)"
_ANY = r"(?:key|token|secret|pass(?:word|wd|phrase|code)|credentials?)"
_OPTION = rf"(?:api|auth|access|hf|secret|bearer)?{_ANY}|(?:api)?keys|secrets|passwords|auth"
_VARIABLE = r"(?<![\w-])(?:--env|-e)[\s=]{1,3}"
_OF_ENGINES = r"(?:VLLM|CUDA|PYTORCH|TORCH|TRITON|NCCL|GGML|LLAMA|OMP|MKL|HIP|ROCR)_"
_BEFORE_VALUE = rf"{SUFFIX}\\{{0,7}}[\"']?\s{{0,8}}(?:[:=]|:=|=>)\s{{0,8}}"
_QUOTED = r"(?:\\{1,7}[\"'][^\"'\\\n]{1,4000}+|\"(?:[^\"\\\n]|\\.){1,4000}+\"?|'(?:[^'\\\n]|\\.){1,4000}+'?)"
_BARE = r"[^\s\"',;&<>)}\]\\]"
_REST = r"[^\n]{1,4000}+"
_HEADERS = r"(?:(?:proxy-)?authorization|(?:set-)?cookie2?|x-[a-z-]{0,30}(?:key|token|secret|auth))"

ROWS = (
    _row(
        "a header in its own line",
        rf"({_HEADERS}\s{{0,3}}[:=]\s{{0,3}})(?![\"'\\]){_REST}",
        f"Authorization: Basic {PLANTED}",
        f'authorization: Digest username="a", response="{PLANTED}"',
        f"Cookie: theme=dark; sid={PLANTED}",
        f"Set-Cookie: sid={PLANTED}; Path=/; HttpOnly",
        f"X-Api-Key: {PLANTED}",
        f"curl -H 'Authorization: Bearer {PLANTED}' https://example.org",
    ),
    _row(
        "a header in quotes",
        rf"({_HEADERS}\\{{0,7}}[\"']?\s{{0,3}}[:,=]\s{{0,3}}b?)(?=\\{{0,7}}[\"']){_QUOTED}",
        f"{{'cookie': 'theme=dark; sid={PLANTED}'}}",
        f"[(b'authorization', b'Bearer {PLANTED}')]",
        f"Authorization='Bearer {PLANTED}'",
        f'{{"Authorization": "token {PLANTED}"}}',
        f'{{\\"Authorization\\": \\"x {PLANTED}\\"}}',
    ),
    _row(
        "a line of a file of variables",
        rf"^([ \t]{{0,40}}(?:export\s|set\s|env\s|-\s)?[A-Za-z0-9_.-]{{0,80}}?{_STRONG}{SUFFIX}[ \t]{{0,8}}"
        rf"[:=][ \t]{{0,8}})(?![\"'\[{{(\s]){_REST}",
        f"password: correct horse {PLANTED}",
        f"export DB_PASSWORD=a b {PLANTED}",
        f"  - MYSQL_PASS={PLANTED}",
        f"API_KEY_OLD: {PLANTED}",
        f"GITHUB_PAT={PLANTED}",
        flags=re.IGNORECASE | re.MULTILINE,
    ),
    _row(
        "several in brackets",
        rf"({_ANY}s?{SUFFIX}\\{{0,7}}[\"']?\s?[:=]\s?)[\[(](?=\s?\\{{0,7}}[\"'])[^\])\n]{{4,4000}}+[\])]?",
        f"non-default args: {{'api_key': ['{PLANTED}', '{PLANTED}'], 'port': 1}}",
        f"'api_keys': ('{PLANTED}',)",
        f"tokens=['{PLANTED}'",
        f"api_key_2=['{PLANTED}']",
    ),
    _row(
        "a quoted value",
        rf"((?:{_STRONG}|{_WEAK}|(?<=[\"'])key|(?<=[\"'])auth){_BEFORE_VALUE}b?)(?=\\{{0,7}}[\"']){_QUOTED}",
        f'"token": "{PLANTED}"',
        f'"access_token": "{PLANTED}"',
        f"{{'refresh_token': '{PLANTED}'}}",
        f'password = "correct horse {PLANTED}"',
        f'{{\\"client_secret\\": \\"{PLANTED}\\"}}',
        f'"auth": "{PLANTED}"',
        f'"key": "{PLANTED}"',
        f"accessToken: '{PLANTED}'",
        f'"password": "an \\" in it {PLANTED}"',
        f"'my-hf-token': b'{PLANTED}'",
        f'{{"api_key_2": "{PLANTED}"}}',
        f"'github_pat': '{PLANTED}'",
    ),
    _row(
        "a bare value",
        rf"({_STRONG}{_BEFORE_VALUE}(?:(?:basic|bearer|token)\s)?)(?![\"'\\\[{{]|None\b|null\b|true\b|false\b){_BARE}+",
        f"password: {PLANTED}",
        f"error with api_key={PLANTED}, and more",
        f"said apiKey: {PLANTED}",
        f"AccountKey={PLANTED};EndpointSuffix=x",
        f"PGPASSWORD={PLANTED} psql",
        f"DB_PASSWORD=${PLANTED}",
        f"with API_KEY_2={PLANTED} and GITHUB_PAT_PROD={PLANTED}",
    ),
    _row(
        "a bare value of a key or token",
        # A token of a vocabulary has a number or angle brackets; a call gives no value away.
        rf"({_WEAK}{_BEFORE_VALUE})(?![\"'\\\[{{(<|]|\d{{1,7}}(?!\w)|None\b|null\b|[A-Za-z_][\w.]{{0,100}}\(|/|~)"
        rf"{_BARE}{{4,}}",
        f"HF_TOKEN={PLANTED}",
        f"token={PLANTED}",
        f"token: {PLANTED}",
        f"MY_KEY={PLANTED}",
        f"deploy-key: {PLANTED}",
        f"OPENAI_KEY: {PLANTED}",
        f"HF_TOKEN_DEV={PLANTED}",
    ),
    _row(
        "a bare key",
        r"((?<![A-Za-z0-9_.-])key(?:\s{0,2}=\s{0,2}|:\s{0,2}))(?=[a-z+/=_-]{0,40}\d)[A-Za-z0-9+/=_-]{8,}+(?![.\w])",
        f"key={PLANTED}",
        f"with the key: {PLANTED}",
    ),
    _row(
        "an option of a command",
        rf"((?<![\w-])--?(?:[a-z0-9]{{1,20}}[-_]){{0,4}}(?:{_OPTION})[\"']?(?:,\s{{0,3}}|\s{{1,3}})"
        rf"|(?<![\w-])(?:-hft|-pw)[\"']?[\s,=]{{1,3}})"
        rf"(?!-)(?:[\"'](?:[^\"'\n]){{1,4000}}+[\"']?|[^\s\"',]+)",
        f"llama-server --api-key {PLANTED} -m x",
        f"vllm serve --hf-token {PLANTED}",
        f"['--api-key', '{PLANTED}', '-m']",
        f'x --password "two words {PLANTED}"',
        f"llama-server -hft {PLANTED}",
    ),
    _row(
        "a variable of a start, in quotes",
        rf"({_VARIABLE}[\"'](?!{_OF_ENGINES})\w{{1,100}}=)[^\"'\n]{{1,4000}}+",
        f"sndr run m --env 'MY_ACCOUNT=a b {PLANTED}' -x",
    ),
    _row(
        "a variable of a start",
        rf"({_VARIABLE}(?!{_OF_ENGINES})\w{{1,100}}=)(?![\"'])[^\s\"']+",
        f"sndr run m --env MY_ACCOUNT={PLANTED}",
        f"docker run -e MY_ACCOUNT={PLANTED} image",
    ),
    _row(
        "a user with a password",
        r"((?<![\w-])(?:-u|--user|--proxy-user)[\"']?[\s,=]{1,3}[\"']?)[^\s\"':/,]{1,100}:[^\s\"',]+",
        f"curl -u someone:{PLANTED} https://example.org",
        f"curl --user=someone:{PLANTED}",
    ),
    _row(
        "a password in a file for several machines",
        r"(\bmachine\s{1,4}\S{1,253}\s{1,20}login\s{1,4})\S{1,253}\s{1,20}password\s{1,4}\S+",
        f"machine example.org login someone password {PLANTED}",
    ),
    _row(
        "a value in an address",
        rf"([?&;#](?:[\w.-]{{0,40}}(?:key|token|secret|password|passwd|credential|signature){SUFFIX}|sig|auth|code"
        r"|session|sid|jwt|ticket|hmac|pwd|pass)=)[^&\s\"'#]+",
        f"GET /v1/models?key={PLANTED}&x=1",
        f"/x?a=1&token={PLANTED}",
        f"/x?api_key_2={PLANTED}",
        f"https://example.org/x?X-Amz-Credential={PLANTED}&X-Amz-Signature={PLANTED}",
        f"?sv=2024&sig={PLANTED}",
        f"#access_token={PLANTED}",
    ),
    _row(
        "a user in an address",
        r"(://)[^\s/\"'<>]{1,300}(?=@)",
        f"https://person:{PLANTED}@example.org/x",
        f"https://{PLANTED}@example.org/x",
        f"postgres://someone:p@ss{PLANTED}@example.org",
        f"redis://:{PLANTED}@example.org:6379",
    ),
    _row(
        "an address that is a secret",
        r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
        r"|api\.telegram\.org/bot|webhook\.office\.com/webhookb2)/?)[^\s\"'<>]+",
        f"https://hooks.slack.com/services/T0/B0/{PLANTED}",
        f"https://discord.com/api/webhooks/1/{PLANTED}",
    ),
    _row(
        "a scheme of a header without its name",
        r"(\b(?:Bearer|BEARER)\s{1,3})(?!(?:[Tt]oken|[Aa]uth\w{0,10}|realm|error|scheme|is|of|or|and|was|header|HTTP|"
        r"access|for|in|to|the|not|keys?)\b)[A-Za-z0-9._~+/=-]{4,}",
        f"with Bearer {PLANTED}",
        flags=0,
    ),
    _row(
        "a scheme of a header in small letters",
        r"(\bbearer\s{1,3})(?=[A-Za-z._~+/=-]{0,40}\d)[A-Za-z0-9._~+/=-]{4,}",
        f"with bearer {PLANTED}",
    ),
    _row(
        "a user and a password in base64",
        r"(\bBasic\s{1,3})(?=\S{1,60}?[A-Z0-9=])[A-Za-z0-9+/=_-]{8,}",
        f"with Basic {PLANTED}==",
        flags=0,
    ),
)

# Rows are dear and most lines have nothing of the kind: one of these stands in each line that a row fits.
_SIGNS = (
    *(
        "key",
        "token",
        "secret",
        "pass",
        "credential",
        "auth",
        "cookie",
        "pwd",
        "_pat",
        "session",
        "://",
        "bearer",
        "basic",
    ),
    *(
        "-u",
        "--user",
        "--proxy-user",
        "-hft",
        "-pw",
        "--env",
        "-e ",
        "-e=",
        "machine",
        "webhook",
        "hooks.slack",
        "telegram.org",
    ),
    *("sig=", "code=", "sid=", "jwt=", "ticket=", "hmac="),
)
_COUNTED = re.compile(r"per token|tokens(?! ?[=:\"'\\])|tokeniz|_pat(?=[chit])")


def without_secrets(text: str) -> str:
    """Return the text without the secrets of all rows; a value may stand in the line after its name."""
    lines = text.split("\n")
    shown: list[str] = []
    suspect: list[str] = []
    for line in lines:
        signs = _has_sign(line)
        if signs or suspect:
            suspect.append(line)
        else:
            shown.append(line)
        if suspect and not signs:
            shown.append(_through_rows("\n".join(suspect)))
            suspect = []
    if suspect:
        shown.append(_through_rows("\n".join(suspect)))
    return "\n".join(shown)


def _through_rows(text: str) -> str:
    for row in ROWS:
        text = row.without(text)
    return text


def _has_sign(line: str) -> bool:
    # Engines count tokens and name paths in every other line.
    small = _COUNTED.sub("", line.lower())
    return any(sign in small for sign in _SIGNS)
