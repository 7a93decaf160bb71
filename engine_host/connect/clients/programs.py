"""Clients that have no file of settings to write: a web page, a program, a shell."""

import json
import shlex
from collections.abc import Mapping
from enum import StrEnum

from engine_host.connect.clients.agents import claude_variables
from engine_host.connect.clients.definition import Client, Snippet
from engine_host.connect.facts import ANY_KEY, KEY_VARIABLE, Facts
from engine_host.connect.shells import Shell, lines
from engine_host.protocol.endpoint.connect import ClientKind
from engine_host.protocol.endpoint.example import EXAMPLE_QUESTION
from engine_host.protocol.language import tr


class Readers(StrEnum):
    """The programs that variables of a shell are for."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"
    ALL = "all"


def variables(facts: Facts, readers: Readers = Readers.OPENAI) -> dict[str, str]:
    """Return the variables that OpenAI's, Anthropic's (and Claude Code) or Ollama's clients read.

    A value that begins with `$` is another variable: the key, where one is needed.
    """
    key = f"${KEY_VARIABLE}" if facts.key_needed else ANY_KEY
    openai = {
        "OPENAI_BASE_URL": facts.url,
        "OPENAI_API_BASE": facts.url,
        "OPENAI_API_KEY": key,
        "OPENAI_MODEL": facts.model,
    }
    anthropic = {**claude_variables(facts), "ANTHROPIC_AUTH_TOKEN": key}
    ollama = {"OLLAMA_HOST": facts.root}
    found = {Readers.OPENAI: openai, Readers.ANTHROPIC: anthropic, Readers.OLLAMA: ollama}
    return found.get(readers, {**openai, **anthropic, **ollama})


def _curl(facts: Facts) -> tuple[Snippet, ...]:
    body = json.dumps(
        {"model": facts.model, "stream": True, "messages": [{"role": "user", "content": EXAMPLE_QUESTION}]},
        ensure_ascii=False,
    )
    words = ["curl", "-N", shlex.quote(f"{facts.url}/chat/completions")]
    words += [f"-H 'Authorization: Bearer '\"${KEY_VARIABLE}\""] if facts.key_needed else []
    words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body)}"]
    return (Snippet(tr("a terminal"), "sh", " \\\n  ".join([" ".join(words[:3]), *words[3:]])),)


def _python(facts: Facts) -> tuple[Snippet, ...]:
    key = f'os.environ["{KEY_VARIABLE}"]' if facts.key_needed else json.dumps(ANY_KEY)
    first = "import os\n\n" if facts.key_needed else ""
    text = f"""{first}from openai import OpenAI

client = OpenAI(base_url={_quoted(facts.url)}, api_key={key})
stream = client.chat.completions.create(
    model={_quoted(facts.model)},
    messages=[{{"role": "user", "content": "{EXAMPLE_QUESTION}"}}],
    stream=True,
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)"""
    return (Snippet("pip install openai", "python", text),)


def _typescript(facts: Facts) -> tuple[Snippet, ...]:
    key = f"process.env.{KEY_VARIABLE}" if facts.key_needed else json.dumps(ANY_KEY)
    text = f"""import OpenAI from "openai";

const client = new OpenAI({{ baseURL: {_quoted(facts.url)}, apiKey: {key} }});
const stream = await client.chat.completions.create({{
  model: {_quoted(facts.model)},
  messages: [{{ role: "user", content: "{EXAMPLE_QUESTION}" }}],
  stream: true,
}});
for await (const chunk of stream) {{
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}}"""
    return (Snippet("npm install openai", "typescript", text),)


def _environment(facts: Facts) -> tuple[Snippet, ...]:
    return tuple(
        Snippet(shell.caption, shell.value, "\n".join(lines(variables(facts), shell))) for shell in Shell
    )


def _environment_notes(_facts: Facts) -> tuple[str, ...]:
    return (
        tr('In a shell: eval "$(sndr connect env --shell sh)"'),
        tr(
            "Anthropic's and Ollama's variables are left out, so that your own programs go where they went: "
            "sndr connect env --for anthropic, ollama or all."
        ),
    )


def _webui(facts: Facts) -> Mapping[str, str]:
    return {
        "Admin Panel > Settings > Connections > OpenAI API": "on",
        "URL": facts.url,
        "Key": f"${KEY_VARIABLE}" if facts.key_needed else ANY_KEY,
        "Model IDs": tr("leave empty: it asks for them"),
    }


def _webui_variables(facts: Facts) -> tuple[Snippet, ...]:
    found = variables(facts)
    wanted = {"OPENAI_API_BASE_URL": facts.url, "OPENAI_API_KEY": found["OPENAI_API_KEY"]}
    return (Snippet(tr("before its first start"), Shell.SH.value, "\n".join(lines(wanted, Shell.SH))),)


def _webui_notes(_facts: Facts) -> tuple[str, ...]:
    return (
        tr(
            "In a container 127.0.0.1 is the container itself: run it with --network host, "
            "or let the endpoint listen on the network with a key (sndr keys create webui; "
            "sndr settings set endpoint.host 0.0.0.0)."
        ),
        tr(
            "Docker Desktop calls this machine host.docker.internal: http://host.docker.internal:PORT/v1, "
            "after sndr settings set endpoint.allowed_hosts host.docker.internal."
        ),
    )


def _quoted(text: str) -> str:
    # A text of JSON is one of Python and of JavaScript too.
    return json.dumps(text)


PROGRAMS = (
    Client(
        "open-webui",
        "Open WebUI",
        ClientKind.WEB,
        programs=("open-webui",),
        fields=_webui,
        snippets=_webui_variables,
        notes=_webui_notes,
    ),
    Client("curl", "curl", ClientKind.PROGRAM, programs=("curl",), snippets=_curl),
    Client("python", "Python", ClientKind.PROGRAM, programs=("python3", "python"), snippets=_python),
    Client(
        "typescript",
        "TypeScript",
        ClientKind.PROGRAM,
        programs=("node", "bun", "deno"),
        snippets=_typescript,
    ),
    Client("env", "Environment", ClientKind.PROGRAM, snippets=_environment, notes=_environment_notes),
)
