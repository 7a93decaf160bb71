"""Make the training data: gather texts, train the tokenizer, cut into tokens and pack into rows.

Sources: Python 3.11's documentation and standard library (PSF licence) and texts of our own.  The same inputs
and seed give the same files.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import code_tasks
import library_docs
import numpy as np
import smalltalk
import source_code
import stories
import tokenizer as bpe
import tool_dialogues
from conversation import Piece, chat, render, system_prompt
from phrasing import API, DETAIL, MODULE, WHAT, ask, loosen, own_question, read_answers, task_question
from rst import blocks, markdown
from tokenizers import Tokenizer

ROW = 2048
SEED = 20261120
KNOWN = (
    "os",
    "os.path",
    "sys",
    "json",
    "re",
    "random",
    "math",
    "datetime",
    "time",
    "collections",
    "itertools",
    "functools",
    "pathlib",
    "shutil",
    "subprocess",
    "threading",
    "asyncio",
    "csv",
    "logging",
    "string",
    "",
)
"""Modules that people ask about most; "" are the built-in names."""

Pair = tuple[str, str]
Document = tuple[str, list[Piece]]


class Material:
    """Everything that documents are made of, read once."""

    def __init__(self, docs: Path, library: Path) -> None:
        self.docs = docs
        self.entries, self.modules = library_docs.read_library(docs)
        described = {e.name: (e, text) for e in self.entries if (text := library_docs.describe(e))}
        self.described = list(described.values())
        self.own = list(read_answers(Path(__file__).with_name("answers.md")))
        self.terms = list(library_docs.glossary(docs))
        self.faq = list(library_docs.questions(docs))
        self.lessons = list(library_docs.lessons(docs))
        self.sources = [f.read_text(encoding="utf-8", errors="ignore") for f in source_code.files(library)]
        self.sentences = [text for _, text in self.described if len(text) < 160]

    def module_answers(self) -> Iterator[tuple[str, str, str]]:
        """Yield (name, short answer, long answer) of every module."""
        for module in self.modules:
            synopsis = module.synopsis.rstrip(".")
            paragraphs = [body for kind, body in module.parts if kind == "paragraph"]
            first = library_docs.sentences(paragraphs[0], 300) if paragraphs else ""
            about = synopsis[:1].lower() + synopsis[1:]
            short = f"`{module.name}` is a module of Python's standard library: {about}."
            listed = []
            for entry, text in self.described:
                if entry.module == module.name and entry.kind in ("function", "class") and len(listed) < 12:
                    listed.append(("bullet", library_docs.sentences(text, 10)))
            detail = [("paragraph", short), *module.parts]
            long = markdown(detail, 1500)
            if listed:
                long += "\n\nIts most important parts are:\n\n" + markdown(listed, 1600)
            yield module.name, f"{short} {first}".strip(), long


def library_pairs(m: Material, rng: random.Random, rounds: int) -> Iterator[Pair]:
    """Yield questions about functions and modules; well-known modules come twice as often."""
    for entry, text in m.described:
        times = 2 * rounds if entry.module in KNOWN else rounds
        if entry.module.startswith(
            ("test", "distutils", "ctypes", "turtle", "msilib", "xml.parsers", "winreg")
        ):
            times = max(1, rounds // 2)
        for _ in range(times):
            name = entry.name
            if name.count(".") > 1 and rng.random() < 0.15:
                name = ".".join(name.split(".")[-2:])
            yield ask(API, name, rng), text
        if len(entry.parts) > 1:
            first = next(i for i, (kind, _) in enumerate(entry.parts) if kind == "paragraph")
            opening = library_docs.describe(entry, 580) or text
            long = markdown([("paragraph", opening), *entry.parts[first + 1 :]], 800)
            yield ask(DETAIL, entry.name, rng), long
    for name, short, long in m.module_answers():
        for _ in range(rounds * (3 if name in KNOWN else 1)):
            yield ask(MODULE, name, rng), short
        for _ in range(rounds * (2 if name in KNOWN else 1)):
            topic = rng.choice([f"the {name} module", name, f"the module {name}", f"the {name} library"])
            yield ask(DETAIL, topic, rng), long


def text_pairs(m: Material, rng: random.Random, rounds: int) -> Iterator[Pair]:
    """Yield terms, FAQ and lessons."""
    for _ in range(rounds):
        for term, text in m.terms:
            yield ask(WHAT, rng.choice([term, f"a {term}", f"the term {term}"]), rng), text
        for question, text in m.faq:
            yield loosen(question, rng), text
        for title, text in m.lessons:
            yield (
                loosen(
                    rng.choice(
                        [
                            "Explain {x}.",
                            "Tell me about {x}.",
                            "Explain {x} in detail.",
                            "{x}",
                            "What about {x}?",
                            "Teach me about {x}.",
                            "Write a text about {x}.",
                        ]
                    ).format(x=title),
                    rng,
                ),
                text,
            )


def own_pairs(m: Material, rng: random.Random, rounds: int) -> Iterator[Pair]:
    """Yield our own answers, greetings, sums, stories and essays."""
    for _ in range(rounds):
        for kind, topics, answer in m.own:
            for _ in range(4):
                yield own_question(kind, topics, rng), answer
        for question, answer in smalltalk.pairs(rng):
            yield loosen(question, rng), answer
        for _ in range(250):
            yield smalltalk.sums(rng)
        for _ in range(250):
            phrase, answer = code_tasks.task(rng)
            if phrase.startswith("CLASS "):
                yield ask(code_tasks.CLASS_QUESTIONS, phrase.removeprefix("CLASS "), rng), answer
            else:
                yield task_question(phrase, rng), answer
        for _ in range(40):
            question, answer = rng.choice([stories.story, stories.essay])(rng)
            yield loosen(question, rng), answer


def code_pairs(m: Material, rng: random.Random) -> Iterator[Pair]:
    """Yield requests for the library's own short functions, by their docstrings."""
    for text in m.sources:
        for name, doc, source in source_code.functions(text):
            first = doc.strip().split("\n\n")[0].replace("\n", " ")
            if 15 < len(first) < 160 and len(source) < 900 and not name.startswith("_"):
                asked = rng.choice(
                    [
                        "Write a function `{n}`: {d}",
                        "Write the Python function {n}. {d}",
                        "Implement `{n}`. {d}",
                    ]
                ).format(n=name, d=first)
                indent = len(source) - len(source.lstrip())
                body = "\n".join(line[indent:] for line in source.split("\n"))
                yield asked, f"```python\n{body}\n```"


def documents(m: Material, rng: random.Random, scale: float) -> Iterator[Document]:
    """Yield every document with the name of its group; `scale` stretches the invented ones."""

    def system() -> str:
        return system_prompt(rng, m.sentences)

    groups: dict[str, list[Pair]] = {
        "library": list(library_pairs(m, rng, max(1, round(6 * scale)))),
        "lessons": list(text_pairs(m, rng, max(1, round(6 * scale)))),
        "own": list(own_pairs(m, rng, max(1, round(40 * scale)))),
        "functions": list(code_pairs(m, rng)),
    }
    for name, pairs in groups.items():
        for pair in pairs:
            yield name, chat([pair], system())
    short = [p for name in ("library", "own") for p in groups[name] if len(p[1]) < 700]
    own = groups["own"]
    for _ in range(round(24_000 * scale)):
        turns = [rng.choice(rng.choice([short, own])) for _ in range(rng.choice([2, 2, 3, 3, 4, 6, 9]))]
        yield "turns", chat(turns, system())
    for _ in range(round(60_000 * scale)):
        tools, messages = tool_dialogues.dialogue(rng)
        draw = rng.random()
        if draw < 0.12:  # tools are there, but the question is another one
            yield "tools", chat([rng.choice(own)], system(), tools)
            continue
        if draw < 0.2:
            question, answer = rng.choice(own)
            messages = [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
                *messages,
            ]
        if draw > 0.85 and messages[-1].get("content"):
            question, answer = rng.choice(own)
            messages = [
                *messages,
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
            ]
        yield "tools", render(messages, tools, system())
    for text in m.sources:
        for passage in source_code.passages(text, rng, 6000):
            yield "code", [(passage + "<|endoftext|>", 3)]
        for _ in range(2):
            for passage in source_code.passages(text, rng, 2500):
                yield "fim", fill(passage, rng)
    for kind, _, answer in m.own:
        for code in [part.split("```")[0] for part in answer.split("```python\n")[1:]]:
            for _ in range(round(30 * scale) if kind == "do" else round(10 * scale)):
                yield "fim", fill(code, rng)
                yield "code", [(code + "<|endoftext|>", 2)]
    for _ in range(round(12_000 * scale)):
        code = code_tasks.task(rng)[1].removeprefix("```python\n").split("```")[0]
        yield "fim", fill(code, rng)
        yield "code", [(code + "<|endoftext|>", 2)]
    for text in (
        f.read_text(encoding="utf-8")
        for f in sorted(m.docs.rglob("*.rst.txt"))
        if f.parent.name in ("library", "tutorial", "howto", "faq", "reference")
    ):
        parts = blocks(text)
        while parts:
            passage = markdown(parts, 5000)
            taken, size = 0, 0
            while taken < len(parts) and size < len(passage) - 4:
                size += len(parts[taken][1]) + 2
                taken += 1
            parts = parts[max(1, taken) :]
            yield "text", [(passage + "<|endoftext|>", 3)]


def fill(text: str, rng: random.Random) -> list[Piece]:
    """Return a fill-in-the-middle document in Qwen's order."""
    before, middle, after = source_code.gap(text, rng)
    return [
        (f"<|fim_prefix|>{before}", 3),
        (f"<|fim_suffix|>{after}", 3),
        ("<|fim_middle|>", 0),
        (middle + "<|endoftext|>", 2),
    ]


def encode(table: Tokenizer, documents_: list[Document]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (token ids, weight classes) of each document; pieces are cut apart, as in prompts."""
    for start in range(0, len(documents_), 4096):
        part = documents_[start : start + 4096]
        flat = [text for _, pieces in part for text, _ in pieces]
        encoded = iter(table.encode_batch_fast(flat, add_special_tokens=False))
        for _, pieces in part:
            ids: list[int] = []
            weights: list[int] = []
            for _, weight in pieces:
                new = next(encoded).ids
                ids += new
                weights += [weight] * len(new)
            yield np.array(ids, dtype=np.uint16), np.array(weights, dtype=np.uint8)


def pack(parts: list[tuple[np.ndarray, np.ndarray]], pad: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill rows of 2048 tokens with whole documents; returns ids, weight classes and age (rows, 2048).

    Age counts tokens since the document's start.  A document longer than a row goes on in further rows.
    """
    pieces = [(i[at : at + ROW], w[at : at + ROW]) for i, w in parts for at in range(0, len(i), ROW)]
    rows: list[list[tuple[np.ndarray, np.ndarray]]] = []
    opened: list[tuple[int, int]] = []  # (free room, row)
    for piece in pieces:
        need = len(piece[0])
        fits = [slot for slot in opened if slot[0] >= need]
        if fits:
            slot = min(fits)
            opened.remove(slot)
        else:
            slot = (ROW, len(rows))
            rows.append([])
        rows[slot[1]].append(piece)
        if slot[0] - need >= 24:
            opened.append((slot[0] - need, slot[1]))
        if len(opened) > 48:
            opened.remove(min(opened))
    ids = np.full((len(rows), ROW), pad, dtype=np.uint16)
    weights = np.zeros((len(rows), ROW), dtype=np.uint8)
    age = np.zeros((len(rows), ROW), dtype=np.uint16)
    for r, row in enumerate(rows):
        at = 0
        for i, w in row:
            ids[r, at : at + len(i)], weights[r, at : at + len(i)] = i, w
            age[r, at : at + len(i)] = np.arange(len(i))
            at += len(i)
        age[r, at:] = np.arange(ROW - at)
    return ids, weights, age


def save_rows(parts: list[tuple[np.ndarray, np.ndarray]], pad: int, file: Path) -> int:
    """Pack and write one ``.npz`` (ids, weights, packed document starts); returns the number of tokens."""
    ids, weights, age = pack(parts, pad)
    np.savez_compressed(
        file,
        ids=ids,
        weights=np.packbits(np.unpackbits(weights[..., None], axis=-1)[..., 6:]),
        starts=np.packbits(age == 0, axis=-1),
    )
    return int(ids.size)


def sample_texts(documents_: list[Document], rng: random.Random, wanted: int) -> Iterator[str]:
    """Yield the texts that the tokenizer learns from, without the special tokens."""
    special = (*bpe.CONTROL_TOKENS, *bpe.MARKUP_TOKENS)
    for _, pieces in rng.sample(documents_, min(wanted, len(documents_))):
        for text, _ in pieces:
            for token in special:
                text = text.replace(token, "")
            yield text


def main(log: Callable[[str], None] = print) -> None:
    """Write the tokenizer, ``train.npz``, ``valid.npz`` and ``data.json`` (counts) into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--docs", type=Path, required=True, help="_sources folder of Python's HTML documentation"
    )
    parser.add_argument("--library", type=Path, required=True, help="folder of Python's standard library")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=1.0, help="amount of invented documents")
    options = parser.parse_args()
    rng = random.Random(SEED)
    material = Material(options.docs, options.library)
    made = list(documents(material, rng, options.scale))
    rng.shuffle(made)
    if not (options.out / "tokenizer.json").exists():
        bpe.save(bpe.train(sample_texts(made, rng, 60_000)), options.out)
    table = Tokenizer.from_file(str(options.out / "tokenizer.json"))
    encoded = list(encode(table, made))
    held = len(made) // 200
    pad = table.token_to_id("<|endoftext|>")
    counts: dict[str, list[int]] = {}
    for (name, _), (ids, _) in zip(made, encoded, strict=True):
        entry = counts.setdefault(name, [0, 0])
        entry[0] += 1
        entry[1] += len(ids)
    tokens = save_rows(encoded[held:], pad, options.out / "train.npz")
    save_rows(encoded[:held], pad, options.out / "valid.npz")
    report = {"tokens": tokens, "documents": len(made), "groups": counts, "seed": SEED}
    (options.out / "data.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    log(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
