# ruff: noqa: E501 - lists of phrases read best as long lines and split strings
"""Many ways to ask the same thing, so that an answer does not hang on one wording."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

WHAT = (
    "What is {x}?",
    "what is {x}",
    "What's {x}?",
    "Explain {x}.",
    "explain {x}",
    "Tell me about {x}.",
    "Can you explain {x}?",
    "What does {x} mean?",
    "Define {x}.",
    "What is {x} in Python?",
    "{x}?",
    "{x}",
    "Please explain {x}.",
    "I want to know about {x}.",
    "Describe {x}.",
    "Explain {x} to me.",
    "What is meant by {x}?",
    "Could you tell me what {x} is?",
    "what are {x}",
    "What are {x}?",
    "Explain {x} in Python.",
    "Give me an example of {x}.",
    "How does {x} work?",
    "How do I use {x}?",
    "What is {x} used for?",
)
HOW = (
    "How do I {x}?",
    "how do I {x}",
    "How can I {x}?",
    "How to {x}?",
    "how to {x}",
    "How do you {x}?",
    "How do I {x} in Python?",
    "how to {x} in python",
    "How can I {x} in Python?",
    "Show me how to {x}.",
    "Can you show me how to {x}?",
    "I want to {x}.",
    "What is the best way to {x}?",
    "Tell me how to {x}.",
    "Explain how to {x}.",
    "How would I {x}?",
    "python {x}",
    "Please show me how to {x} in Python.",
    "How do you {x} in Python?",
    "What is the way to {x} in python?",
    "I need to {x}. How?",
)
DO = (
    "Write a function that {x}.",
    "write a function that {x}",
    "Write a Python function that {x}.",
    "Can you write a function that {x}?",
    "Please write a function that {x}.",
    "I need a function that {x}.",
    "Give me a function that {x}.",
    "Show me a function that {x}.",
    "python function that {x}",
    "Write code that {x}.",
    "write python code that {x}",
    "Create a function that {x}.",
    "Implement a function that {x}.",
    "Could you write a Python function which {x}?",
    "Write a program that {x}.",
    "function that {x}",
    "code that {x}",
    "Make a function that {x}.",
    "Write me a function that {x}.",
    "Write a short Python function that {x}.",
)
DO_BASE = (
    "Write a function to {x}.",
    "write a python function to {x}",
    "Write code to {x}.",
    "Function to {x}",
    "Python code to {x}",
    "Write a Python program to {x}.",
    "I need a function to {x}.",
    "python program to {x}",
    "Create a function to {x}.",
    "Can you write a function to {x}?",
    "Please write a Python function to {x}.",
)
API = (
    "What does {x} do?",
    "what does {x} do",
    "What is {x}?",
    "what is {x}",
    "Explain {x}.",
    "explain {x}",
    "How does {x} work?",
    "What is {x} for?",
    "Tell me about {x}.",
    "{x}",
    "{x}?",
    "What does {x} do in Python?",
    "Can you explain {x}?",
    "Describe {x}.",
    "What is {x} used for?",
    "How do I use {x}?",
    "What does {x}() do?",
    "what does {x}() do?",
    "What does `{x}` do?",
    "Explain `{x}`.",
    "Please explain {x}.",
    "Help with {x}.",
    "Document {x}.",
    "What do I use {x} for?",
    "I don't understand {x}.",
    "Explain {x} to me.",
    "{x}()",
)
DETAIL = (
    "Explain {x} in detail.",
    "Tell me everything about {x}.",
    "Describe {x} in detail.",
    "Give me a long explanation of {x}.",
    "Explain {x} at length.",
    "Write a long text about {x}.",
    "Give me all the details of {x}.",
    "explain {x} in detail",
    "Can you explain {x} in detail?",
    "I want a detailed explanation of {x}.",
    "Write a long explanation of {x}.",
    "Please explain {x} in detail.",
    "Tell me more about {x}.",
)
DIFFERENCE = (
    "What is the difference between {x} and {y}?",
    "difference between {x} and {y}",
    "{x} vs {y}",
    "{x} or {y}?",
    "How do {x} and {y} differ?",
    "What's the difference between {x} and {y}?",
    "When do I use {x} and when {y}?",
    "Compare {x} and {y}.",
    "Explain the difference between {x} and {y}.",
    "how is {x} different from {y}",
)
MODULE = (
    "What is the {x} module?",
    "What does the {x} module do?",
    "what is the {x} module for?",
    "What is {x}?",
    "Tell me about the {x} module.",
    "Explain the {x} module.",
    "what does the {x} module do",
    "{x} module",
    "What can I do with {x}?",
    "What is the module {x} for?",
    "Describe the {x} module.",
    "What is {x} used for?",
    "Explain {x}.",
    "import {x}",
    "When do I use the {x} module?",
    "How do I use the {x} module?",
    "{x}",
)


def mistyped(text: str, rng: random.Random) -> str:
    """Return the text with one letter dropped, doubled or swapped with its neighbour."""
    at = rng.randrange(max(1, len(text) - 2))
    if not text[at : at + 2].isalpha():
        return text
    return (
        text[:at]
        + rng.choice([text[at + 1], text[at + 1] + text[at], text[at] * 2 + text[at + 1]])
        + text[at + 2 :]
    )


def loosen(question: str, rng: random.Random) -> str:
    """Return the question as a hurried or a polite person would type it."""
    if len(question) > 12 and rng.random() < 0.03:
        question = mistyped(question, rng)
    draw = rng.random()
    if draw < 0.15:
        question = question[:1].lower() + question[1:]
    elif draw < 0.25 and question == question.capitalize():
        question = question.lower()
    if question.endswith(("?", ".")) and rng.random() < 0.2:
        question = question[:-1]
    elif question[-1:].isalnum() and rng.random() < 0.1:
        question += "?"
    draw = rng.random()
    if draw < 0.03:
        question = "Hi! " + question
    elif draw < 0.05:
        question = "Hello, " + question[:1].lower() + question[1:]
    elif draw < 0.07:
        question += " Please." if question.endswith("?") else " please"
    elif draw < 0.09:
        question = "Please tell me: " + question
    return question


def ask(patterns: tuple[str, ...], x: str, rng: random.Random) -> str:
    """Return one wording about `x`."""
    return loosen(rng.choice(patterns).format(x=x), rng)


def verb_base(phrase: str) -> str:
    """Return "adds two numbers" as "add two numbers"."""
    first, _, rest = phrase.partition(" ")
    if first.endswith(("ches", "shes", "sses", "zes", "xes")):
        first = first[:-2]
    elif first.endswith("ies"):
        first = first[:-3] + "y"
    elif first.endswith("s") and not first.endswith("ss") and first != "is":
        first = first[:-1]
    return f"{first} {rest}"


def read_answers(file: Path) -> Iterator[tuple[str, list[str], str]]:
    """Yield (kind, topics, answer) of our own answers; a block begins with ``what:``, ``how:``, ``do:``, ``ask:``."""
    for block in re.split(r"\n(?=(?:what|how|do|ask): )", file.read_text(encoding="utf-8")):
        head, _, answer = block.strip().partition("\n")
        kind, _, topics = head.partition(": ")
        yield kind, [t.strip() for t in topics.split(" | ")], answer.strip()


def task_question(phrase: str, rng: random.Random) -> str:
    """Return one wording of a request for the function that does `phrase` ("adds two numbers")."""
    if rng.random() < 0.3:
        return loosen(rng.choice(DO_BASE).format(x=verb_base(phrase)), rng)
    return ask(DO, phrase, rng)


def own_question(kind: str, topics: list[str], rng: random.Random) -> str:
    """Return one wording for one of our own answers."""
    topic = rng.choice([topics[0], *topics])
    if kind == "what":
        return ask(WHAT, topic, rng)
    if kind == "how":
        return ask(HOW, topic, rng)
    if kind == "do":
        return task_question(topic, rng)
    compared = re.fullmatch(r"What is the difference between (.*) and (.*)\?", topics[0])
    if compared and rng.random() < 0.7:
        a, b = compared.groups()
        if rng.random() < 0.3:
            a, b = b, a
        short = [x.removeprefix("a ").removeprefix("an ") for x in (a, b)]
        x, y = rng.choice(
            [(a, b), (short[0], short[1]), (short[0] + "s", short[1] + "s") if a != short[0] else (a, b)]
        )
        return loosen(rng.choice(DIFFERENCE).format(x=x, y=y), rng)
    done = re.fullmatch(r"What does (.*) do\?", topics[0])
    if done and rng.random() < 0.6:
        return ask(API, done.group(1), rng)
    return loosen(topic, rng)
