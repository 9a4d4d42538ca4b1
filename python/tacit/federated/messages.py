"""How many there are of something."""


def counted(count: int, name: str) -> str:
    """As "1 client", or "2 clients"."""
    return f"{count} {name}" + ("" if count == 1 else "s")
