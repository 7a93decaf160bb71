"""Make the engine's request out of the client's, with the client's own bytes wherever they can stay."""

import json
import shlex
import time
from dataclasses import replace
from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway import reranking
from engine_host.gateway.call import Call
from engine_host.gateway.chat.forced_call import CallsOfText, as_format, has_to_call
from engine_host.gateway.chat.request import check, repaired
from engine_host.gateway.chat.structured import in_words_of
from engine_host.gateway.chat.tool_or_format import ToolOrAgain, both
from engine_host.gateway.directory import Target
from engine_host.gateway.modalities import check_written
from engine_host.gateway.openai import progress
from engine_host.gateway.openai.completion_logprobs import CompletionLogprobs
from engine_host.gateway.openai.dimensions import Shortened, wanted_dimensions
from engine_host.gateway.openai.infill import (
    InfillAnswer,
    infill_request,
    prompt_with_numbers,
    prompt_with_tokens,
    takes_numbers,
    wants_infill,
)
from engine_host.gateway.openai.live_counts import WithoutTimings, with_timings, with_usage_of_each
from engine_host.gateway.openai.several import SeveralAnswers, has_several_prompts, is_one
from engine_host.gateway.openai.usage import UsageApart, UsageFilter, asks_for_usage, with_usage
from engine_host.gateway.openai.vllm_answer import VllmAnswer
from engine_host.gateway.openai.vllm_fields import as_vllm_reads
from engine_host.gateway.passage import Passage, Two
from engine_host.gateway.routes.rows import Asked
from engine_host.protocol.errors import Reason

# llama.cpp reads messages, tools, schemas and pictures for it as for an answer.
READER = "/apply-template"
_CHAT = "/v1/chat/completions"
_TRIED = 256
"""Tokens in which a model that is about to call a tool has begun to."""


def embeddings(asked: Asked) -> Call:
    """Pass a request for embeddings on; raises EndpointError for an engine that writes."""
    if not asked.target.embeddings:
        raise faults.EndpointError(
            400,
            "embeddings_off",
            f"{asked.target.name} was not started for embeddings. Start it for them with: "
            f"{_started_again(asked.target, '--set embeddings=true')}",
            Reason.UNSUPPORTED,
        )
    wanted = wanted_dimensions(asked.body) if asked.target.native_infill else None
    return Call(asked.path, asked.raw, False, passage=None if wanted is None else Shortened(wanted))


def rerank(asked: Asked) -> Call:
    """Ask for the scores of texts; raises EndpointError for an engine that was not started for it."""
    target = asked.target
    if not target.reranking:
        raise faults.EndpointError(
            400,
            "reranking_off",
            f"{target.name} was not started for reranking. Start it for that with: "
            f"{_started_again(target, '--set reranking=true')}",
            Reason.UNSUPPORTED,
        )
    raw = json.dumps(reranking.request(asked.body, target.engine_name), ensure_ascii=False).encode()
    return Call("/v1/rerank", raw, False, passage=reranking.Ranked(asked.body, target.name))


def chat(asked: Asked, told: Passage | None = None) -> Call:
    """Pass a chat on, repaired where it has to be; raises EndpointError for an engine that takes none.

    `told` translates the answer for a client that reads another form.
    """
    check_writes(asked)
    llamacpp, elsewhere = asked.target.native_infill, asked.target.provider is not None
    body = asked.body
    if not elsewhere:
        check(body)
        check_written(body, asked.target)
        # Before the repairs, which leave out a form that a forced call has no place for.
        body = in_words_of(body if llamacpp else as_vllm_reads(body), for_llamacpp=llamacpp)
    body = repaired(body, for_llamacpp=llamacpp, for_provider=elsewhere)
    raw = asked.raw if body is asked.body else json.dumps(body, ensure_ascii=False).encode()
    call = _plain(asked.path, raw, body, asked.target)
    if told is not None:
        call = translated(call, told)
    if not asked.target.native_infill:
        return call
    if has_to_call(body):
        return forced(call, as_calls(body, asked.target, told))
    return both(body, call, "grammar" if body.get("grammar") else "response_format")


def forced(call: Call, otherwise: Call, limit: str = "max_tokens") -> Call:
    """Return a call that has to be answered with a tool's; `otherwise` is asked where it is not.

    `limit` is the field with the most tokens of its answer. One that comes as a whole is tried with few: a
    model that writes would write until its context is full before anybody sees that it calls nothing.
    """
    inner = call.passage or Passage()
    whole = replace(call, passage=ToolOrAgain(inner, otherwise), tentative=True)
    body = json.loads(call.body)
    asked = next(
        (body[name] for name in (limit, "max_completion_tokens") if body.get(name) is not None), None
    )
    if call.stream or (isinstance(asked, int) and 0 <= asked <= _TRIED):
        return whole
    few = {name: value for name, value in body.items() if name != "max_completion_tokens"} | {limit: _TRIED}
    return replace(
        call,
        body=json.dumps(few, ensure_ascii=False).encode(),
        passage=ToolOrAgain(inner, otherwise, whole, _TRIED),
        tentative=True,
        # A call that is cut may be none that the engine can read.
        otherwise=whole,
        otherwise_at=(500,),
    )


def as_calls(chat: dict[str, Any], target: Target, told: Passage | None = None) -> Call:
    """Return the request of llama.cpp that cannot be answered but with calls of the chat's tools."""
    body = as_format(chat)
    call = _plain(_CHAT, json.dumps(body, ensure_ascii=False).encode(), body, target)
    call = translated(call, CallsOfText())
    return call if told is None else translated(call, told)


def completion(asked: Asked) -> Call:
    """Pass a completion on, with a suffix as the engine takes one; raises EndpointError where it cannot."""
    check_writes(asked)
    path, target = asked.path, asked.target
    body = asked.body
    if target.provider is None:
        llamacpp = target.native_infill
        body = in_words_of(body if llamacpp else as_vllm_reads(body), for_llamacpp=llamacpp)
    if "suffix" not in body:
        raw = asked.raw if body is asked.body else json.dumps(body, ensure_ascii=False).encode()
        return _plain(path, raw, body, target)
    if not wants_infill(body):
        rest = {name: value for name, value in body.items() if name != "suffix"}
        return _plain(path, json.dumps(rest).encode(), rest, target)
    check_fills(target)
    if not target.native_infill and target.fim_tokens is not None:
        whole = prompt_with_tokens(body, target.fim_tokens)
        return _plain(path, json.dumps(whole).encode(), whole, target)
    if target.fim_ids and takes_numbers(body):
        whole = prompt_with_numbers(body, target.fim_ids)
        return _plain(path, json.dumps(whole, ensure_ascii=False).encode(), whole, target)
    answer = InfillAnswer(asked.request_id, target.name, int(time.time()), include_usage=asks_for_usage(body))
    return counting(Call("/infill", infill_request(body), asked.stream, answer), body, target)


def check_fills(target: Target) -> None:
    """Refuse a model that cannot fill a gap in a text; raises EndpointError 400."""
    unable = target.fill_in_the_middle is False or (not target.native_infill and target.fim_tokens is None)
    if unable:
        raise faults.EndpointError(
            400,
            "fill_in_the_middle_unsupported",
            f"{target.name} has no fill-in-the-middle tokens, so it cannot use suffix.",
            Reason.UNSUPPORTED,
            "suffix",
        )


def translated(call: Call, told: Passage) -> Call:
    """Return the call whose answer goes through its own translation first, and then through this one."""
    before: Passage | InfillAnswer | None = call.infill or call.passage
    return replace(call, infill=None, passage=told if before is None else Two(before, told))


def check_writes(asked: Asked) -> None:
    """Refuse an engine that writes nothing, or reads no texts; raises EndpointError."""
    target = asked.target
    if target.reranking:
        raise faults.EndpointError(
            400,
            "reranking_only",
            f"{target.name} was started for reranking alone: it takes /v1/rerank.",
            Reason.UNSUPPORTED,
        )
    if target.embeddings:
        raise faults.EndpointError(
            400,
            "embeddings_only",
            f"{target.name} was started for embeddings alone. Start it for text with: "
            f"{_started_again(target)}",
            Reason.UNSUPPORTED,
        )
    numbers = asked.path == "/v1/completions" and _is_token_numbers(asked.body.get("prompt"))
    if target.tokens_only and not numbers:
        raise faults.EndpointError(
            400,
            "tokenizer_missing",
            f"{target.name} has no tokenizer: it takes /v1/completions with token numbers as prompt.",
            Reason.UNSUPPORTED,
        )


def _started_again(target: Target, *more: str) -> str:
    """Return the command that starts the model of an engine in its place."""
    # By its own id, which the name of an engine need not be.
    name = target.engine_name
    # The last of these is the model, before it stands a preset.
    model = target.stands_for[-1] if target.stands_for else name
    named = [] if model == name else ["--name", shlex.quote(name)]
    return " ".join(["sndr run", shlex.quote(model), *named, *more, "--instead-of", shlex.quote(name)])


def _is_token_numbers(prompt: object) -> bool:
    """Return True if a prompt is a list of token ids, or several lists of them."""
    if not isinstance(prompt, list) or not prompt:
        return False
    return all(isinstance(one, int) for one in prompt) or all(_is_token_numbers(one) for one in prompt)


def _plain(path: str, raw: bytes, body: dict[str, Any], target: Target) -> Call:
    """Return a chat or completion as the client wrote it, with usage figures requested where needed."""
    call = _of_one(path, raw, body, target)
    if not call.stream or not target.native_infill or is_one(body):
        return call
    one_prompt = not has_several_prompts(body)
    return translated(call, SeveralAnswers(shows_usage=asks_for_usage(body), one_prompt=one_prompt))


def _check_best_of(body: dict[str, Any], target: Target) -> None:
    """Refuse to choose the best of more answers than are asked for, which engines leave out silently."""
    best, wanted = body.get("best_of"), body.get("n") or 1
    if isinstance(best, int) and not isinstance(best, bool) and best > wanted:
        raise faults.EndpointError(
            400,
            "unsupported",
            f"The engine of {target.name} does not choose among answers (best_of). Ask for them with n.",
            Reason.UNSUPPORTED,
            "best_of",
        )


def _of_one(path: str, raw: bytes, body: dict[str, Any], target: Target) -> Call:
    if target.provider is None:
        _check_best_of(body, target)
    stream = bool(body.get("stream"))
    if target.native_infill and not target.usage_on_request:
        return counting(_of_llamacpp(path, raw, body, target), body, target)
    if target.is_own_vllm:
        shows = asks_for_usage(body)
        counted = None
        if stream and target.tells_counts and is_one(body):
            counted = with_usage_of_each(raw, body)
        told = VllmAnswer(shows_usage=shows, one=is_one(body), counted=counted is not None)
        if counted is None:
            counted = raw if not stream or shows else with_usage(body)
        return Call(path, counted, stream, passage=told)
    if not stream or not target.usage_on_request or asks_for_usage(body):
        return Call(path, raw, stream)
    return Call(path, with_usage(body), stream, passage=UsageFilter())


def _of_llamacpp(path: str, raw: bytes, body: dict[str, Any], target: Target) -> Call:
    if path == "/v1/completions":
        return _completion(raw, body, target)
    stream, reader = bool(body.get("stream")), READER if path == _CHAT else None
    if reader is not None and progress.is_long(raw, body):
        return Call(
            path, progress.with_progress(raw), stream, passage=progress.ProgressFilter(), reader=reader
        )
    return Call(path, raw, stream, reader=reader)


def counting(call: Call, body: dict[str, Any], target: Target) -> Call:
    """Return a call to llama.cpp that tells its tokens as it writes them, which the client does not get."""
    if not call.stream or not target.tells_counts or not is_one(body):
        return call
    counted = with_timings(call.body, body)
    if counted is None:
        return call
    if call.infill is not None:
        # It reads the last frame alone.
        return replace(call, body=counted)
    inner = call.passage
    without = WithoutTimings() if inner is None else Two(WithoutTimings(), inner)
    return replace(call, body=counted, passage=without)


def _completion(raw: bytes, body: dict[str, Any], target: Target) -> Call:
    """A completion of llama.cpp, which leaves out `echo` silently and writes `logprobs` as in a chat."""
    if body.get("echo"):
        raise faults.EndpointError(
            400,
            "unsupported",
            f"The engine of {target.name} does not repeat the prompt (echo); vLLM does.",
            Reason.UNSUPPORTED,
            "echo",
        )
    top = body.get("logprobs")
    stream = bool(body.get("stream"))
    schema = body.get("json_schema")
    # The usage of several answers is added up.
    apart = UsageApart(shows=asks_for_usage(body)) if stream and is_one(body) else None
    if top is None:
        return Call("/v1/completions", raw, stream, passage=apart, schema=schema)
    if top == 0:
        # To llama.cpp none is no log probabilities at all; here it is those of the chosen tokens.
        raw = json.dumps({**body, "logprobs": 1}).encode()
    call = Call("/v1/completions", raw, stream, passage=apart, schema=schema)
    return translated(call, CompletionLogprobs(top))
