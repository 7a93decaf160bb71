"""Small programming tasks put together from parts, with code that is right by construction."""

from __future__ import annotations

import random

NUMBER_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}
LETTERS = "abcde"
NOUNS: dict[str, str] = {
    "bank account": "owner balance",
    "car": "make model year",
    "book": "title author pages",
    "person": "name age",
    "student": "name grade",
    "rectangle": "width height",
    "circle": "radius",
    "dog": "name breed",
    "cat": "name age",
    "point": "x y",
    "movie": "title director",
    "song": "title artist",
    "city": "name population",
    "order": "item price",
    "product": "name price",
    "employee": "name salary",
    "user": "name email",
    "house": "address rooms",
    "animal": "name sound",
    "player": "name score",
    "ticket": "number price",
    "message": "sender text",
    "task": "title done",
    "recipe": "name steps",
    "planet": "name mass",
    "robot": "name battery",
    "triangle": "a b c",
}
UNITS: tuple[tuple[str, str, str], ...] = (
    ("kilometers", "miles", "* 0.621371"),
    ("miles", "kilometers", "* 1.609344"),
    ("meters", "feet", "* 3.28084"),
    ("feet", "meters", "* 0.3048"),
    ("kilograms", "pounds", "* 2.20462"),
    ("pounds", "kilograms", "* 0.453592"),
    ("inches", "centimeters", "* 2.54"),
    ("centimeters", "inches", "/ 2.54"),
    ("hours", "minutes", "* 60"),
    ("minutes", "seconds", "* 60"),
    ("seconds", "minutes", "/ 60"),
    ("days", "hours", "* 24"),
    ("hours", "seconds", "* 3600"),
    ("grams", "kilograms", "/ 1000"),
    ("kilograms", "grams", "* 1000"),
    ("meters", "kilometers", "/ 1000"),
    ("kilometers", "meters", "* 1000"),
    ("bytes", "kilobytes", "/ 1024"),
    ("weeks", "days", "* 7"),
    ("years", "days", "* 365"),
)
TESTS: tuple[tuple[str, str, str], ...] = (
    ("even", "is_even", "{x} % 2 == 0"),
    ("odd", "is_odd", "{x} % 2 == 1"),
    ("positive", "is_positive", "{x} > 0"),
    ("negative", "is_negative", "{x} < 0"),
    ("zero", "is_zero", "{x} == 0"),
)
REDUCTIONS: tuple[tuple[str, str, str], ...] = (
    ("largest", "largest", "max(numbers)"),
    ("smallest", "smallest", "min(numbers)"),
    ("sum", "total", "sum(numbers)"),
    ("maximum", "maximum", "max(numbers)"),
    ("minimum", "minimum", "min(numbers)"),
    ("average", "average", "sum(numbers) / len(numbers)"),
    ("mean", "mean", "sum(numbers) / len(numbers)"),
)


def block(code: str, after: str = "") -> str:
    """Return the code as a fenced answer."""
    return f"```python\n{code}\n```" + (f"\n\n{after}" if after else "")


def function(name: str, parameters: str, doc: str, body: str, after: str = "") -> str:
    """Return an answer with one documented function."""
    return block(f'def {name}({parameters}):\n    """{doc}"""\n    {body}', after)


def task(rng: random.Random) -> tuple[str, str]:
    """Return ("returns ...", answer): what the function should do, and the function."""
    return rng.choice(FAMILIES)(rng)


def of_several(rng: random.Random) -> tuple[str, str]:
    """The largest, smallest, sum or product of a few numbers."""
    count = rng.randint(2, 5)
    names = ", ".join(LETTERS[:count])
    word, expression = rng.choice(
        [
            ("largest", f"max({names})"),
            ("smallest", f"min({names})"),
            ("maximum", f"max({names})"),
            ("minimum", f"min({names})"),
            ("sum", " + ".join(LETTERS[:count])),
            ("product", " * ".join(LETTERS[:count])),
            ("average", f"({' + '.join(LETTERS[:count])}) / {count}"),
        ]
    )
    values = [rng.randint(1, 9) for _ in range(count)]
    result = eval(
        expression, {"max": max, "min": min}, dict(zip(LETTERS, values, strict=False))
    )  # ours alone
    phrase = f"{rng.choice(['returns', 'finds', 'computes'])} the {word} of {NUMBER_WORDS[count]} numbers"
    return phrase, function(
        word,
        names,
        f"Return the {word} of {NUMBER_WORDS[count]} numbers.",
        f"return {expression}",
        ""
        if word == "average"
        else f"For example, `{word}({', '.join(map(str, values))})` returns {result}.",
    )


def with_constant(rng: random.Random) -> tuple[str, str]:
    """Add, multiply or compare with a constant."""
    n = rng.randint(2, 100)
    kind = rng.randrange(6)
    if kind == 0:
        return f"adds {n} to a number", function(f"add_{n}", "x", f"Return x plus {n}.", f"return x + {n}")
    if kind == 1:
        return f"multiplies a number by {n}", function(
            f"times_{n}", "x", f"Return x times {n}.", f"return x * {n}"
        )
    if kind == 2:
        return (
            f"checks if a number is greater than {n}",
            function("is_greater", "x", f"Return True if x is greater than {n}.", f"return x > {n}"),
        )
    if kind == 3:
        return (
            f"checks if a number is less than {n}",
            function("is_less", "x", f"Return True if x is less than {n}.", f"return x < {n}"),
        )
    if kind == 4:
        return (
            f"checks if a number is divisible by {n}",
            function("is_divisible", "x", f"Return True if x is divisible by {n}.", f"return x % {n} == 0"),
        )
    return f"subtracts {n} from a number", function(
        f"subtract_{n}", "x", f"Return x minus {n}.", f"return x - {n}"
    )


def select(rng: random.Random) -> tuple[str, str]:
    """Keep some numbers of a list, or count or add them."""
    word, _, test = rng.choice(TESTS[:4])
    condition = test.format(x="n")
    kind = rng.randrange(3)
    if kind == 0:
        return (
            f"{rng.choice(['returns', 'finds', 'keeps'])} the {word} numbers of a list",
            function(
                f"{word}_numbers",
                "numbers",
                f"Return the {word} ones of the numbers.",
                f"return [n for n in numbers if {condition}]",
            ),
        )
    if kind == 1:
        return (
            f"counts the {word} numbers in a list",
            function(
                f"count_{word}",
                "numbers",
                f"Return how many of the numbers are {word}.",
                f"return sum(1 for n in numbers if {condition})",
            ),
        )
    return (
        f"sums the {word} numbers of a list",
        function(
            f"sum_{word}",
            "numbers",
            f"Return the sum of the {word} numbers.",
            f"return sum(n for n in numbers if {condition})",
        ),
    )


def test_number(rng: random.Random) -> tuple[str, str]:
    """Ask one property of a number."""
    word, name, test = rng.choice(TESTS)
    return (
        f"{rng.choice(['checks if', 'tests whether', 'returns true if'])} a number is {word}",
        function(name, "n", f"Return True if n is {word}.", "return " + test.format(x="n")),
    )


def reduce_list(rng: random.Random) -> tuple[str, str]:
    """Reduce a list to one number."""
    word, name, expression = rng.choice(REDUCTIONS)
    return (
        f"{rng.choice(['returns', 'computes', 'finds', 'calculates'])} the {word} of a list"
        + rng.choice(["", " of numbers"]),
        function(name, "numbers", f"Return the {word} of the numbers.", f"return {expression}"),
    )


def convert(rng: random.Random) -> tuple[str, str]:
    """Convert one unit into another."""
    source, target, factor = rng.choice(UNITS)
    return (
        f"converts {source} to {target}",
        function(f"to_{target}", source, f"Return the {source} as {target}.", f"return {source} {factor}"),
    )


def ends(rng: random.Random) -> tuple[str, str]:
    """Take the first or last items of a list or a string."""
    n, thing = rng.randint(2, 10), rng.choice(["list", "string"])
    unit, name = ("items", "items") if thing == "list" else ("characters", "text")
    first = rng.random() < 0.5
    side = "first" if first else "last"
    return (
        f"returns the {side} {n} {unit} of a {thing}",
        function(
            f"{side}_{unit}",
            name,
            f"Return the {side} {n} {unit}.",
            f"return {name}[:{n}]" if first else f"return {name}[-{n}:]",
        ),
    )


def count_letter(rng: random.Random) -> tuple[str, str]:
    """Count one letter."""
    letter = rng.choice("abcdefghijklmnopqrstuvwxyz")
    return (
        f"counts the letter {letter} in a string",
        function(
            f"count_{letter}",
            "text",
            f"Return how often {letter} appears in text.",
            f'return text.count("{letter}")',
        ),
    )


def repeat(rng: random.Random) -> tuple[str, str]:
    """Print a text several times."""
    word, n = rng.choice(["hello", "Python", "yes", "thank you", "good morning", "test"]), rng.randint(2, 20)
    return (
        f"prints {word} {n} times",
        function("repeat", "", f"Print {word} {n} times.", f'for _ in range({n}):\n        print("{word}")'),
    )


def count_to(rng: random.Random) -> tuple[str, str]:
    """Print a range of numbers."""
    a, b = rng.randint(0, 10), rng.randint(11, 100)
    down = rng.random() < 0.3
    if down:
        return (
            f"prints the numbers from {b} down to {a}",
            function(
                "count_down",
                "",
                f"Print the numbers from {b} down to {a}.",
                f"for number in range({b}, {a - 1}, -1):\n        print(number)",
            ),
        )
    return (
        f"prints the numbers from {a} to {b}",
        function(
            "count",
            "",
            f"Print the numbers from {a} to {b}.",
            f"for number in range({a}, {b + 1}):\n        print(number)",
        ),
    )


def class_for(rng: random.Random) -> tuple[str, str]:
    """A class with a few attributes."""
    noun = rng.choice(list(NOUNS))
    names = NOUNS[noun].split()
    title = "".join(part.capitalize() for part in noun.split())
    lines = [
        f"class {title}:",
        f'    """A {noun}."""',
        "",
        f"    def __init__(self, {', '.join(names)}):",
        *[f"        self.{n} = {n}" for n in names],
    ]
    extra = {
        "bank account": [
            "",
            "    def deposit(self, amount):",
            "        self.balance += amount",
            "",
            "    def withdraw(self, amount):",
            "        if amount > self.balance:",
            '            raise ValueError("not enough money")',
            "        self.balance -= amount",
        ],
        "rectangle": ["", "    def area(self):", "        return self.width * self.height"],
        "circle": ["", "    def area(self):", "        return 3.141592653589793 * self.radius**2"],
    }.get(noun, [])
    if not extra:
        extra = [
            "",
            "    def __repr__(self):",
            f'        return f"{title}(' + ", ".join(f"{{self.{n}!r}}" for n in names) + ')"',
        ]
    return f"CLASS {noun}", block("\n".join([*lines, *extra]))


FAMILIES = (
    of_several,
    of_several,
    with_constant,
    select,
    test_number,
    reduce_list,
    convert,
    ends,
    count_letter,
    repeat,
    count_to,
    class_for,
)
CLASS_QUESTIONS = (
    "Write a class for a {x}.",
    "write a class for a {x}",
    "Write a Python class for a {x}.",
    "Create a class {x}.",
    "Write a {x} class.",
    "write a {x} class in python",
    "Can you write a class for a {x}?",
    "make a class for a {x}",
    "Define a class that represents a {x}.",
    "class {x}",
    "I need a class for a {x}.",
    "Show me a class for a {x}.",
)
