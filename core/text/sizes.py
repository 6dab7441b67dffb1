"""Sizes of files and texts with binary units. Pure."""

UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def format_size(size: int) -> str:
    """Format a number of bytes, such as “256 KiB”, “1.5 MiB” or “900 bytes”."""
    for unit, factor in UNITS:
        if size >= factor:
            return f"{size / factor:,.1f}".removesuffix(".0") + f" {unit}"
    return "1 byte" if size == 1 else f"{size:,} bytes"
