"""Bytes as people read them, wherever the host or the command line says them."""


def size_text(count: float) -> str:
    """Bytes with a binary unit and one decimal: `21.4 GiB`, `512 B`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
