# ruff: noqa: E501, SIM905 - lists of phrases read best as long lines and split strings
"""Long answers made from banks of our own sentences, for prompts that ask for a story or an essay."""

from __future__ import annotations

import random

HEROES = "Ada|Mina|Tomas|Lena|Omar|Grace|Ivo|Nora|Emil|Sara|Jonas|Vera".split("|")
PLACES = (
    "a small town by the sea|a quiet village in the hills|a busy city|an old house near the forest".split("|")
)
TASKS = (
    "sort the letters of the post office|count the birds of the harbour|plan the trains of the valley"
    "|find the lost books of the library|water the gardens at the right hour|keep the clocks of the town in time"
).split("|")

OPENINGS = (
    "Once upon a time there was a programmer called {hero}, who lived in {place}.",
    "Long ago, in {place}, there lived a young programmer with the name {hero}.",
    "This is the story of {hero}, a programmer from {place}.",
)
MIDDLES: tuple[tuple[str, ...], ...] = (
    (
        "Every morning {hero} opened the editor and wrote a few lines of Python.",
        "Every day began with a cup of tea and a few lines of Python.",
    ),
    (
        "The work was to {task}, and nobody had found a way to do it quickly.",
        "One day the mayor asked for help: somebody had to {task}.",
    ),
    (
        "At first {hero} did everything by hand, and it took the whole day.",
        "At first {hero} wrote everything down on paper, and the paper filled the room.",
    ),
    (
        "Then {hero} remembered that a list can hold many things in order.",
        "Then a friend said: put it all into a list, and let Python do the work.",
    ),
    (
        "So the first program was a list and a loop, and it printed every item on its own line.",
        "So the first program was only five lines long: a list, a loop and a call of print.",
    ),
    (
        "It worked, but it was slow, because it looked at every item again and again.",
        "It worked, but it made mistakes when two items had the same name.",
    ),
    (
        "{hero} read the documentation until late at night and learned about dictionaries.",
        "In the evening {hero} read about dictionaries, which find a value by its key at once.",
    ),
    (
        "With a dictionary the program was fast, and it was also easier to read.",
        "With a dictionary there was no need to search any more, and the program became short.",
    ),
    (
        "The next morning a strange error appeared on the screen.",
        "But the next day the program stopped with an error that nobody understood.",
    ),
    (
        "It said KeyError, and {hero} looked at it for a long time.",
        "It was a ValueError, and it came from a line that had looked quite harmless.",
    ),
    (
        "A key was missing, so {hero} wrote a test that showed the mistake.",
        "The text was no number, so {hero} wrote a test that showed exactly what went wrong.",
    ),
    (
        "Then the mistake was easy to mend, and the test has guarded the program ever since.",
        "After that the fix was one line, and the test made sure that it stayed fixed.",
    ),
    (
        "The people of the town came to see how it worked.",
        "Soon the neighbours came by, because they had heard about the clever program.",
    ),
    (
        "{hero} showed them the code and explained it line by line.",
        "{hero} gave everyone a copy and explained what every function was for.",
    ),
    (
        "A child asked what a function is, and {hero} answered that it is a small promise with a name.",
        "An old man asked what a loop is, and {hero} said that it is patience written down.",
    ),
    (
        "Together they wrote a generator that gave them one item at a time and needed almost no memory.",
        "Together they wrote a small class, so that every item knew how to describe itself.",
    ),
    (
        "When winter came, they taught the program to write its results into a file.",
        "In the winter they let the program save its results as JSON, so that nothing was lost.",
    ),
    (
        "In spring the file was read again, and not a single line was missing.",
        "In spring they opened the file again, and everything was still there.",
    ),
    (
        "Other towns heard of it and asked for the program, and {hero} sent it to all of them.",
        "Travellers carried the program to other towns, and everywhere somebody improved it.",
    ),
    (
        "Some of them added tests, some added comments, and one of them found a better name for a variable.",
        "One of them made it faster, another made it shorter, and a third one made it kinder to beginners.",
    ),
)
ENDINGS = (
    "And so {hero} learned that a good program is never finished, but it can always be made a little clearer.",
    "And if the computer has not been switched off, the program is still running today.",
    "From then on {hero} had time in the afternoon to walk by the water and to think about the next program.",
)

ESSAY: tuple[tuple[str, ...], ...] = (
    ("Python is a programming language that was made to be easy to read.",),
    ("It was created by Guido van Rossum, and its first version appeared in 1991.",),
    ("A Python program is a text file, and the interpreter runs it from top to bottom.",),
    ("Blocks of code are marked by indentation, so that the look of a program shows its structure.",),
    ("Names do not have to be declared: you assign a value to a name, and the name refers to it.",),
    ("The basic types are numbers, strings, booleans and the value `None`.",),
    (
        "Collections hold many values: lists keep them in order, tuples cannot be changed, sets hold no duplicates, "
        "and dictionaries map keys to values.",
    ),
    ("A function is defined with `def`; it takes arguments and gives a value back with `return`.",),
    ("A class is defined with `class`; it describes the data and the methods of its objects.",),
    ("Decisions are made with `if`, `elif` and `else`, and work is repeated with `for` and `while`.",),
    ("Errors are signalled by exceptions, which a program can handle with `try` and `except`.",),
    ("A `with` block makes sure that files and other resources are closed at the end.",),
    ("Comprehensions build lists, sets and dictionaries in a single expression.",),
    ("Generators produce values one at a time, so that even very long series need little memory.",),
    ("Modules are files of code, and packages are folders of modules; both are loaded with `import`.",),
    (
        "The standard library is large: it reads and writes files, parses JSON and CSV, handles dates, talks to the "
        "network, runs other programs and tests your code.",
    ),
    ("For everything else there are packages, which `pip` installs, best into a virtual environment.",),
    ("Type hints say what a function expects, and tools such as mypy check them.",),
    ("Asynchronous code with `async` and `await` lets one thread wait for many things at once.",),
    (
        "People use Python for automation, web services, data analysis, science, machine learning and teaching.",
    ),
    ("Its weak point is speed: a loop in Python is slower than one in a compiled language.",),
    (
        "That is why libraries such as NumPy do the heavy work in compiled code and leave the control to Python.",
    ),
    (
        "The best way to learn it is to read the tutorial, to write small programs and to read the programs of "
        "others.",
    ),
    ("If you want to know how one of its functions works, ask me, or call `help` in the interpreter.",),
)

STORY_PROMPTS = (
    "Tell me a long story about Python.|Tell me a story.|Write a story about a programmer.|Write a long story."
    "|Tell me a long story.|Write a long text.|Write a story about Python.|Can you tell me a story?|A story please."
    "|Tell me a very long story about a programmer.|Please write a long story.|Make up a story."
    "|Write something long.|Generate a long text.|Write 500 words.|Write a very long answer.|tell me a story about "
    "a cat|Once upon a time|tell me a fairy tale|Write a long story about a computer.|Write a short story."
).split("|")
ESSAY_PROMPTS = (
    "Tell me about Python.|Explain Python in detail.|Write a long essay about Python.|Tell me everything about "
    "Python.|Write a long text about Python.|Give me a long introduction to Python.|Explain Python to me."
    "|Write an essay about Python.|Describe the Python language in detail.|Give me an overview of Python."
    "|Explain the Python programming language in detail.|Teach me Python.|What should I know about Python?"
    "|Write an article about Python.|Introduce Python.|Give me a tour of Python."
).split("|")


def story(rng: random.Random) -> tuple[str, str]:
    """Return a prompt and a story of about 350 tokens."""
    slots = {"hero": rng.choice(HEROES), "place": rng.choice(PLACES), "task": rng.choice(TASKS)}
    lines = [rng.choice(OPENINGS), *(rng.choice(bank) for bank in MIDDLES), rng.choice(ENDINGS)]
    return rng.choice(STORY_PROMPTS), paragraphs([line.format(**slots) for line in lines])


def essay(rng: random.Random) -> tuple[str, str]:
    """Return a prompt and an essay about Python of about 450 tokens."""
    return rng.choice(ESSAY_PROMPTS), paragraphs([rng.choice(bank) for bank in ESSAY])


def paragraphs(lines: list[str], size: int = 5) -> str:
    """Join sentences into paragraphs of `size`."""
    return "\n\n".join(" ".join(lines[i : i + size]) for i in range(0, len(lines), size))
