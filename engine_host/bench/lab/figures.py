"""The figures of a part from its samples, each through its gates."""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from engine_host.bench.conditions.gpu_watch import throttled
from engine_host.bench.lab.spread import quantile, spread
from engine_host.bench.lab.workloads import Part
from engine_host.protocol.bench.lab import (
    Figure,
    Gate,
    GpuRound,
    Knee,
    PartResult,
    Quantity,
    Sample,
    Standing,
)
from engine_host.protocol.language import tr

LEAST_WINDOW = 0.05
"""The share of a request in which it decodes; below it, the answer came in one lump."""
LEAST_SEEN = 0.75
"""The share of the engine's own time of decoding in which its text comes; less was held up on its way."""
LEAST_ANSWER = 0.25
"""The share of the tokens that were allowed; a shorter answer says little of decoding."""
LEAST_PROMPT = 512
"""Tokens of a prompt; a shorter one measures the way there, not the reading."""
MOST_CACHED = 0.1
"""The share of a prompt out of a cache from which on it flatters: a template's head is always there."""
MOST_TOGETHER = 1.25
"""Tokens of one arrival, on average, up to which the gaps between arrivals are those between tokens."""
APART = 0.1
"""The share of the time of a token from which on two arrivals are apart: closer ones are of one moment."""
LEAST_TOLD = 3
"""Samples that tell a quantity, and half of all: with fewer there is no figure of it."""
PAYS = 0.10
"""More tokens a second by which more streams at once still pay."""
RATES = {Quantity.DECODE, Quantity.AGGREGATE, Quantity.PREFILL}
"""The quantities of which more is better."""
_FOR_P95 = 20
_FOR_P99 = 100

Reading = tuple[float | None, Gate | None, str]


def part_result(
    part: Part,
    samples: Sequence[Sample],
    *,
    failed: str = "",
    gpu_rounds: Sequence[GpuRound] = (),
) -> PartResult:
    """Return the figures of one part; its warm samples are left out. A check that `failed` strikes them.

    Where its GPUs were slowed down there are none.
    """
    own = [sample for sample in samples if sample.part == part.name and not sample.warm]
    answered = [sample for sample in own if not sample.error]
    short = [sample.unjudged for sample in answered if sample.unjudged]
    judged = [sample for sample in answered if not sample.unjudged]
    left_out = f"{len(short)} of {len(answered)} answers: {short[0]}" if short else ""
    untold = bool(short) and len(judged) < max(LEAST_TOLD, len(answered) / 2)
    struck = _struck(own, answered) or ((Gate.CHECK_FAILED, failed) if failed else None)
    gpus = [one for one in gpu_rounds if one.part == part.name and one.round >= part.warm]
    slowed = throttled(gpus, part.name)
    figures = [
        _none(quantity, Gate.THROTTLED, slowed)
        if slowed and struck is None
        else _none(quantity, Gate.ANSWER_SHORT, left_out)
        if untold and struck is None
        else _noted(_of_part(quantity, part, answered if untold else judged, struck), left_out)
        for quantity in Quantity
    ]
    return PartResult(
        name=part.name,
        streams=part.streams,
        warm=part.warm,
        measured=part.measured * part.streams,
        max_tokens=part.max_tokens,
        done=len(answered),
        shared=part.shared,
        energy=_energy(part.streams, gpus, answered),
        figures=tuple(figures),
    )


def _of_part(
    quantity: Quantity, part: Part, answered: Sequence[Sample], struck: tuple[Gate, str] | None
) -> Figure:
    if quantity is Quantity.AGGREGATE:
        return _aggregate(part, answered, struck)
    if quantity is Quantity.ITL:
        return _itl(answered, struck)
    return _figure(quantity, answered, _reading(quantity, part), struck)


def _noted(figure: Figure, left_out: str) -> Figure:
    """Return a figure that stands with what was left out of it."""
    if not left_out or figure.standing is not Standing.PUBLISHED or figure.gate is not None:
        return figure
    return figure.model_copy(update={"gate": Gate.ANSWER_SHORT, "why": f"left out: {left_out}"})


def _judged(part: PartResult, samples: Sequence[Sample]) -> list[Sample]:
    """Return the measured answers of a part of which something can be told."""
    own = (one for one in samples if one.part == part.name and not one.warm)
    return [one for one in own if not one.error and not one.unjudged]


def _energy(streams: int, gpus: Sequence[GpuRound], answered: Sequence[Sample]) -> float | None:
    """Return joules for 1,000 tokens, over the whole rounds that tell both."""
    joules, tokens = 0.0, 0
    for one in gpus:
        own = [sample.tokens for sample in answered if sample.round == one.round]
        if one.energy is None or len(own) != streams or None in own:
            continue
        joules += one.energy
        tokens += sum(count or 0 for count in own)
    return 1000 * joules / tokens if tokens else None


def by_round(quantity: Quantity, part: PartResult, samples: Sequence[Sample]) -> dict[int, float]:
    """Return the median of a quantity in each measured round; rounds that do not tell it are left out."""
    answered = _judged(part, samples)
    if quantity is Quantity.AGGREGATE:
        return _rates(part.streams, answered)
    reading = _reading(quantity, part)
    found: dict[int, list[float]] = {}
    for sample in answered:
        value, _, _ = reading(sample)
        if value is not None:
            found.setdefault(sample.round, []).append(value)
    return {turn: quantile(values, 0.5) for turn, values in sorted(found.items())}


def values_of(quantity: Quantity, part: PartResult, samples: Sequence[Sample]) -> list[float]:
    """Return the single values that the median of a figure is of."""
    answered = _judged(part, samples)
    if quantity is Quantity.AGGREGATE:
        return list(_rates(part.streams, answered).values())
    read = map(_reading(quantity, part), answered)
    return [value for value, _, _ in read if value is not None]


def speeds(quantity: Quantity, part: PartResult, samples: Sequence[Sample]) -> dict[int, float]:
    """Return what is more when it is better, by round; a time of 0 is below what the clock tells."""
    told = {turn: value for turn, value in by_round(quantity, part, samples).items() if value > 0}
    return told if quantity in RATES else {turn: 1 / value for turn, value in told.items()}


def knee(parts: Sequence[PartResult]) -> Knee:
    """Return the fewest streams after which the next step adds less than a tenth of tokens a second.

    It is looked for up to the first step without a figure that stands: behind it nothing can be compared.
    """
    known: list[tuple[int, float]] = []
    missing = ""
    for part in parts:
        figure = next(one for one in part.figures if one.quantity is Quantity.AGGREGATE)
        if figure.standing is not Standing.PUBLISHED or figure.value is None:
            state = "struck" if figure.standing is Standing.STRUCK else tr("not measured")
            missing = tr("the figure of {streams} at once is {state}", streams=part.streams, state=state)
            break
        known.append((part.streams, figure.value))
    for (few, before), (more, after) in pairwise(known):
        if after < before * (1 + PAYS):
            change = 100 * (after / before - 1)
            return Knee(
                streams=few,
                why=tr(
                    "{more} at once give {change:+.0f} % tokens a second of all together",
                    more=more,
                    change=change,
                ),
            )
    if missing or not known:
        return Knee(
            streams=None, why=tr("cannot be told: {missing}", missing=missing or tr("nothing was measured"))
        )
    return Knee(streams=None, why=tr("not reached up to {known} at once", known=known[-1][0]))


def _struck(own: Sequence[Sample], answered: Sequence[Sample]) -> tuple[Gate, str] | None:
    faulty = [sample for sample in answered if sample.fault]
    if faulty:
        return Gate.INCOHERENT, f"{len(faulty)} of {len(answered)} answers: {faulty[0].fault}"
    failed = len(own) - len(answered)
    if failed and answered:
        error = next(sample.error for sample in own if sample.error)
        return Gate.REQUESTS_FAILED, f"{failed} of {len(own)} requests failed: {error}"
    return None


def _figure(
    quantity: Quantity,
    samples: Sequence[Sample],
    reading: Callable[[Sample], Reading],
    struck: tuple[Gate, str] | None,
) -> Figure:
    """Take one value of each sample, those left out that tell none; too few of them make no figure."""
    read = [reading(sample) for sample in samples]
    values = [value for value, _, _ in read if value is not None]
    left_out = [(gate, why) for value, gate, why in read if value is None]
    if not left_out:
        return _of(quantity, values, struck)
    gate, why = left_out[0]
    if len(values) < max(LEAST_TOLD, len(samples) / 2):
        return _none(quantity, gate or Gate.NO_SAMPLES, why)
    figure = _of(quantity, values, struck)
    if struck is not None:
        return figure
    return figure.model_copy(update={"gate": gate, "why": f"{len(left_out)} of {len(read)} left out: {why}"})


def _of(quantity: Quantity, values: Sequence[float], struck: tuple[Gate, str] | None) -> Figure:
    if not values:
        return _none(quantity, Gate.NO_SAMPLES, tr("no measured request was answered"))
    found = spread(values)
    return Figure(
        quantity=quantity,
        standing=Standing.PUBLISHED if struck is None else Standing.STRUCK,
        value=found.median,
        low=found.low,
        high=found.high,
        q1=found.q1,
        q3=found.q3,
        p95=quantile(values, 0.95) if len(values) >= _FOR_P95 else None,
        p99=quantile(values, 0.99) if len(values) >= _FOR_P99 else None,
        samples=found.count,
        gate=None if struck is None else struck[0],
        why="" if struck is None else struck[1],
    )


def _none(quantity: Quantity, gate: Gate, why: str) -> Figure:
    return Figure(quantity=quantity, standing=Standing.NOT_MEASURED, gate=gate, why=why)


def _reading(quantity: Quantity, part: Part | PartResult) -> Callable[[Sample], Reading]:
    """Return how a sample tells a quantity of its own, of which an aggregate is none."""
    match quantity:
        case Quantity.DECODE:
            return lambda sample: _decode(sample, part.max_tokens)
        case Quantity.TPOT:
            return lambda sample: _tpot(sample, part.max_tokens)
        case Quantity.PREFILL:
            return lambda sample: _prefill(sample, shared=part.shared)
        case Quantity.TTFT:
            return lambda sample: _ttft(sample, shared=part.shared)
        case Quantity.ITL:
            return lambda sample: (_gap(sample), None, "")
        case Quantity.TOTAL:
            return lambda sample: _total(sample, shared=part.shared)
        case Quantity.AGGREGATE:
            raise ValueError("an aggregate is of a round")


def _window(sample: Sample, max_tokens: int) -> Reading:
    """Return the seconds from the first to the last token of an answer, where they can be told."""
    if sample.tokens is None:
        return None, Gate.NO_USAGE, "the server does not report the generated tokens"
    if sample.first is None or sample.last is None or sample.tokens < 2:
        return None, Gate.ANSWER_SHORT, f"an answer has {sample.tokens} tokens"
    max_tokens = sample.max_tokens or max_tokens
    if sample.tokens < LEAST_ANSWER * max_tokens:
        return None, Gate.ANSWER_SHORT, f"an answer ends after {sample.tokens} of {max_tokens} tokens"
    window = sample.last - sample.first
    if window <= LEAST_WINDOW * sample.total:
        return (
            None,
            Gate.WINDOW_SHORT,
            "the text of an answer came within 5 % of its time, too short to tell",
        )
    if held_up := _held_up(sample):
        return None, Gate.WINDOW_SHORT, held_up
    return window, None, ""


def _held_up(sample: Sample) -> str:
    """Return why the clock of whoever asked tells nothing of decoding; empty where it does."""
    if sample.decoding is None or sample.first is None or sample.last is None or not sample.tokens:
        return ""
    seen, decoded = sample.last - sample.first, sample.decoding * (1 - 1 / sample.tokens)
    if seen >= LEAST_SEEN * decoded:
        return ""
    return f"the engine decoded for {decoded:.2g} s, but its text came within {seen:.2g} s: it was held up"


def _decode(sample: Sample, max_tokens: int) -> Reading:
    window, gate, why = _window(sample, max_tokens)
    if window is None or sample.tokens is None:
        return None, gate, why
    # The first token is the end of the prefill.
    return (sample.tokens - 1) / window, None, ""


def _tpot(sample: Sample, max_tokens: int) -> Reading:
    window, gate, why = _window(sample, max_tokens)
    if window is None or sample.tokens is None:
        return None, gate, why
    return window / (sample.tokens - 1), None, ""


def _ttft(sample: Sample, *, shared: bool) -> Reading:
    if sample.first is None:
        return None, Gate.ANSWER_SHORT, "an answer has no text"
    if why := _spared(sample, shared=shared):
        return None, Gate.CACHE_HIT, why
    return sample.first, None, ""


def _total(sample: Sample, *, shared: bool) -> Reading:
    # Reading a short prompt is hardly a part of it.
    why = _spared(sample, shared=shared) if (sample.prompt_tokens or 0) >= LEAST_PROMPT else ""
    return (None, Gate.CACHE_HIT, why) if why else (sample.total, None, "")


def _spared(sample: Sample, *, shared: bool) -> str:
    """Return what a cache spared of a prompt that was to be read; empty where it spared nothing."""
    if (
        shared
        or not sample.cached_tokens
        or sample.cached_tokens <= MOST_CACHED * (sample.prompt_tokens or 0)
    ):
        return ""
    return f"{sample.cached_tokens} of {sample.prompt_tokens or '?'} tokens came out of the prefix cache"


def _prefill(sample: Sample, *, shared: bool) -> Reading:
    if sample.prompt_tokens is None:
        return None, Gate.NO_USAGE, "the server does not report the tokens of the prompt"
    if sample.prompt_tokens < LEAST_PROMPT:
        why = f"a prompt of {sample.prompt_tokens} tokens is too short for it; `sndr bench run prefill`"
        return None, Gate.PROMPT_SHORT, why
    if shared:
        return None, Gate.CACHE_HIT, "its prompts begin alike, and what a cache spares is no prefill"
    waited, gate, why = _ttft(sample, shared=False)
    if waited is None or waited <= 0:
        return None, gate, why
    return (sample.prompt_tokens - (sample.cached_tokens or 0)) / waited, None, ""


def _itl(samples: Sequence[Sample], struck: tuple[Gate, str] | None) -> Figure:
    """Return the gaps between tokens: the median of each answer's median, and the tails of all gaps."""
    gaps = []
    for sample in samples:
        if sample.tokens is None:
            return _none(Quantity.ITL, Gate.NO_USAGE, tr("the server does not report the generated tokens"))
        if len(sample.arrivals) < 2:
            return _none(Quantity.ITL, Gate.WINDOW_SHORT, tr("an answer came in one lump"))
        together = sample.tokens / len(sample.arrivals)
        if together > MOST_TOGETHER:
            why = tr(
                "{together:.1f} tokens came at a time, as with speculation; TPOT is the time of one",
                together=together,
            )
            return _none(Quantity.ITL, Gate.TOKENS_TOGETHER, why)
        if held_up := _held_up(sample):
            return _none(Quantity.ITL, Gate.WINDOW_SHORT, held_up)
        gaps.append(_gaps(sample))
    if (bunch := _bunch(samples)) > MOST_TOGETHER:
        why = tr(
            "{bunch:.1f} tokens came at a time, at once after a pause; TPOT is the time of one", bunch=bunch
        )
        return _none(Quantity.ITL, Gate.TOKENS_TOGETHER, why)
    figure = _of(Quantity.ITL, [quantile(one, 0.5) for one in gaps], struck)
    every = [gap for one in gaps for gap in one]
    return figure.model_copy(
        update={
            "p95": quantile(every, 0.95) if len(every) >= _FOR_P95 else None,
            "p99": quantile(every, 0.99) if len(every) >= _FOR_P99 else None,
        }
    )


def _bunch(samples: Sequence[Sample]) -> float:
    """Return the tokens of one moment: those that a busy machine hands over together are not apart."""
    tokens = moments = 0
    for sample in samples:
        gaps = _gaps(sample)
        pace = sum(gaps) / len(gaps)
        tokens += len(sample.arrivals)
        moments += 1 + sum(gap > APART * pace for gap in gaps)
    return tokens / moments if moments else 0.0


def _gaps(sample: Sample) -> list[float]:
    return [after - before for before, after in pairwise(sample.arrivals)]


def _gap(sample: Sample) -> float | None:
    return quantile(_gaps(sample), 0.5) if len(sample.arrivals) > 1 else None


def _aggregate(part: Part, samples: Sequence[Sample], struck: tuple[Gate, str] | None) -> Figure:
    """Return the tokens a second of all streams of a round: from the first request sent to the last end."""
    if any(sample.tokens is None for sample in samples):
        return _none(Quantity.AGGREGATE, Gate.NO_USAGE, tr("the server does not report the generated tokens"))
    for sample in samples:
        value, gate, why = _total(sample, shared=part.shared)
        if value is None and gate is not None:
            return _none(Quantity.AGGREGATE, gate, why)
    rates = list(_rates(part.streams, samples).values())
    if samples and not rates:
        return _none(Quantity.AGGREGATE, Gate.REQUESTS_FAILED, tr("no round was answered whole"))
    return _of(Quantity.AGGREGATE, rates, struck)


def _rates(streams: int, samples: Sequence[Sample]) -> dict[int, float]:
    """Return the tokens a second of each whole round."""
    rates = {}
    ordered = sorted(samples, key=lambda sample: sample.round)
    for turn, group in groupby(ordered, key=lambda sample: sample.round):
        together = list(group)
        # A round that lost a request, or was cut short, had fewer streams at once.
        if len(together) == streams:
            seconds = max(one.started + one.total for one in together) - min(one.started for one in together)
            rates[turn] = sum(one.tokens or 0 for one in together) / max(seconds, 1e-9)
    return rates
