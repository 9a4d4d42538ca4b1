"""Counts in messages, with singular and plural."""


def counted(count: int, name: str) -> str:
    """Formats a count with its noun, such as "1 client" or "2 clients"."""
    return f"{count} {name}" + ("" if count == 1 else "s")
