"""What the prefix lens says of conversations with a real llama.cpp."""

import asyncio
from typing import Any

from engine_host.protocol.endpoint.requests import Conversation, PrefixReason, PromptPart
from tests.integration.gateway.demo import DEMO, MODEL, anthropic_client, openai_client

STORY = "Once upon a time there was a fox that lived in the wood beside a river. " * 12
SYSTEM = {"role": "system", "content": "You tell stories."}
FIRST = {"role": "user", "content": STORY}
MORE = {"role": "user", "content": "And then?"}


def said(answer: Any) -> dict[str, str]:
    return {"role": "assistant", "content": answer.choices[0].message.content}


async def conversations(served: Any, turns: int) -> tuple[Conversation, ...]:
    """The conversations, once so many turns are compared."""
    async with asyncio.timeout(10):
        while True:
            found: tuple[Conversation, ...] = served.gateway.prefixes.conversations(200)
            if sum(one.count for one in found) >= turns:
                return found
            await asyncio.sleep(0.01)


def test_a_conversation_reuses_its_prefix_and_an_edit_is_found(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, openai_client(served.url) as ai:
            asked: Any = {"model": MODEL, "max_tokens": 4, "temperature": 0}
            asked["extra_headers"] = {"x-session-id": "0f3a9c1e-1111-4222-8333-444455556666"}
            first = await ai.chat.completions.create(messages=[SYSTEM, FIRST], **asked)
            history = [SYSTEM, FIRST, said(first), MORE]
            await ai.chat.completions.create(messages=history, **asked)
            edited = [SYSTEM, {**FIRST, "content": STORY.replace("fox", "cat", 1)}, *history[2:]]
            await ai.chat.completions.create(messages=edited, **asked)
            (found,) = await conversations(served, 3)
            assert (found.label, found.source) == ("0f3a9c1e", "x-session-id")
            start, then, change = found.turns
            assert (start.reason, start.read_again) == (PrefixReason.FIRST_TURN, None)
            assert (then.reason, then.diverged) == (PrefixReason.REUSED, None)
            assert start.prompt_tokens
            assert then.cached_tokens
            assert then.cached_tokens > 0.8 * start.prompt_tokens
            assert change.reason is PrefixReason.MESSAGE_CHANGED
            assert change.diverged is not None
            assert (change.diverged.part, change.diverged.number) == (PromptPart.MESSAGE, 2)
            assert change.read_again
            assert change.read_again > 0.5 * start.prompt_tokens
            assert change.prefill_seconds
            assert change.lost_seconds
            assert change.lost_seconds <= change.prefill_seconds
            # The bundled model is a hybrid: its hits end at states that were kept.
            assert start.checkpoint is None
            assert (then.checkpoint, change.checkpoint) == (then.cached_tokens, change.cached_tokens)
            assert change.checkpoint_again is not None
            assert change.checkpoint_again < change.read_again, "the rest was changed by the edit"

    asyncio.run(go())


def test_a_long_prompt_tells_how_far_it_is(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1, context=8192) as served, openai_client(served.url) as ai:
            asked: Any = {"model": MODEL, "max_tokens": 4, "temperature": 0}
            long = {"role": "user", "content": STORY * 20}
            async with await ai.chat.completions.create(messages=[long], stream=True, **asked) as stream:
                chunks = [chunk async for chunk in stream]
            assert all(not hasattr(chunk, "prompt_progress") for chunk in chunks)
            assert chunks[0].choices[0].delta.role == "assistant"
            told = [one.request for one in served.events if one.request.prefill_of]
            assert told
            (done,) = served.gateway.request_log.requests()
            assert done.prompt_tokens == told[0].prefill_of
            assert all((one.prefill_tokens or 0) <= one.prefill_of for one in told)

    asyncio.run(go())


def test_a_conversation_in_anthropics_form_names_itself(real: Any) -> None:
    async def go() -> None:
        async with real(model=DEMO, slots=1) as served, anthropic_client(served.url) as ai:
            asked: Any = {"model": MODEL, "max_tokens": 4, "extra_body": {"temperature": 0}}
            asked["metadata"] = {"user_id": "user_1_account__session_0f3a9c1e-1111-4222-8333-444455556666"}
            asked["messages"] = [FIRST]
            for text in ("You tell stories.", "It is 12:01. You tell stories."):
                async with ai.messages.stream(system=text, **asked) as stream:
                    await stream.get_final_message()
            (found,) = await conversations(served, 2)
            assert (found.source, found.client.startswith("Anthropic SDK")) == ("metadata.user_id", True)
            change = found.turns[-1]
            assert change.reason is PrefixReason.SYSTEM_CHANGED
            assert change.cached_tokens is not None
            assert change.lost_seconds

    asyncio.run(go())
