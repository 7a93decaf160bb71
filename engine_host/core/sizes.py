"""Sizes and time spans as people read them."""


def size_text(count: float) -> str:
    """Bytes with a binary unit and one decimal: `21.4 GiB`, `512 B`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        # As it is shown: 1023.96 is no longer below 1024.
        if round(value, 1) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def duration(seconds: float) -> str:
    """A time span as people read it."""
    # A clock that was set back must not make a time negative.
    seconds = max(0.0, seconds)
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds + 0.05), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
