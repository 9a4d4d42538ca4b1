"""Makes the command-line reference from the parsers themselves, so that it is what they accept.

This replaces the line ``<!-- commands -->`` of the page ``reference/command_line.md``.
"""

import argparse
import re
from collections.abc import Iterator
from typing import Any

#: Characters of a line of usage.
WIDTH = 96

#: The page's line that the commands replace.
MARK = "<!-- commands -->"


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yields the commands below a parser, or the parser itself if it has none."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for command in dict.fromkeys(action.choices.values()):
            yield from leaves(command)


def summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Returns each command's line in the list of commands, by the command's full name."""
    found: dict[str, str] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                found[command.prog] = said.get(name, "")
                found |= summaries(command)
    return found


def escaped(text: str) -> str:
    """Returns a parser's text as Markdown, where only text between backquotes is code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    marked = [
        part if part.startswith("`") else re.sub(r"([\\*_<>\[\]#])", r"\\\1", part)
        for part in parts
    ]
    return "".join(marked).replace("|", "\\|")


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=WIDTH)
    value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
    if action.option_strings:
        names = ", ".join(
            f"`{name} {value}`" if value else f"`{name}`" for name in action.option_strings
        )
    else:
        names = f"`{formatter._metavar_formatter(action, action.dest)(1)[0]}`"
    said = escaped(formatter._expand_help(action)) if action.help else ""
    notes = ["required"] if action.required and action.option_strings else []
    is_set = action.default not in (None, [], argparse.SUPPRESS) and action.nargs != 0
    if is_set and action.option_strings and not re.search("default|not given", action.help or ""):
        notes.append(f"default `{action.default}`")
    name = names.replace("|", "\\|")
    note = f" *({', '.join(notes)})*" if notes else ""
    return f"| {name} | {said}{note} |"


def section(parser: argparse.ArgumentParser, summary: str) -> str:
    """Returns a command's usage and options as Markdown."""
    formatter = argparse.HelpFormatter(parser.prog, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    usage = formatter.format_help().strip()
    actions = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]
    text = parser.description or summary
    lines = [f"## `{parser.prog}`", "", escaped(text[:1].upper() + text[1:].rstrip(".")) + ".", ""]
    lines += ["```text", usage, "```", ""]
    if actions:
        lines += [
            "| option | what it does |",
            "| --- | --- |",
            *(_row(parser, each) for each in actions),
            "",
        ]
    if parser.epilog:
        lines += [escaped(parser.epilog), ""]
    return "\n".join(lines)


def reference(parser: argparse.ArgumentParser) -> str:
    """Returns all commands as Markdown."""
    said = summaries(parser)
    return "\n".join(section(command, said.get(command.prog, "")) for command in leaves(parser))


def _insert(_app: Any, _page: str, source: list[str]) -> None:
    if MARK in source[0]:
        from tacit.cli import command_line

        source[0] = source[0].replace(MARK, reference(command_line()))


def setup(app: Any) -> dict[str, bool]:
    """Registers the extension with Sphinx."""
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
