"""Check that no message says the same thing twice."""

import re

#: Number of equal consecutive words that counts as a repetition.
ROW = 6


def said_twice(message: str) -> list[str]:
    """Returns the word sequences that occur twice in a message, without its quotations and
    paths."""
    words = re.findall(r"[\w.()=']+", re.sub(r'"[^"]*"|\S*/\S*', "", message).lower())
    rows = [" ".join(words[at : at + ROW]) for at in range(len(words) - ROW + 1)]
    return sorted({row for row in rows if rows.count(row) > 1})
