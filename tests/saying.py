"""What messages have in common: none says the same twice."""

import re

#: So many words in a row, said again, are the same advice.
ROW = 6


def said_twice(message: str) -> list[str]:
    """Rows of words that it has twice, but for what it quotes, such as steps, and for paths."""
    words = re.findall(r"[\w.()=']+", re.sub(r'"[^"]*"|\S*/\S*', "", message).lower())
    rows = [" ".join(words[at : at + ROW]) for at in range(len(words) - ROW + 1)]
    return sorted({row for row in rows if rows.count(row) > 1})
