"""``tacit completion``: completion of commands and options in a shell.

The script is generated from the parsers, so it knows every command, option and choice that they
know.
"""

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Parts of the name that stands for a value in the help, if the value is a file or a folder.
FILES = ("FILE", "DIR", "FOLDER", "MODEL", ".toml")

BASH = """\
_tacit() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path=tacit words= word i
    if [ "$current" = "=" ]; then current=
    elif [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$path ${COMP_WORDS[i]}" in
            @PATHS@) path="$path ${COMP_WORDS[i]}";;
        esac
    done
    COMPREPLY=()
    case "$path $before" in
@VALUES@
        *) case "$path:$current" in
@WORDS@
        esac;;
    esac
    if [ "$words" = @files ]; then
        compopt -o filenames 2> /dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
    else
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    fi
}
complete -F _tacit tacit
"""

FISH = """\
function __tacit_path
    set -l path tacit
    for word in (commandline -opc)[2..]
        contains -- "$path $word" @PATHS@; and set path "$path $word"
    end
    echo $path
end
complete -c tacit -f
@RULES@
"""


@dataclass(frozen=True)
class Command:
    """One command, or the command line as a whole."""

    path: str
    actions: list[argparse.Action]

    @property
    def words(self) -> list[str]:
        """Subcommands, and choices of the command's arguments."""
        return [
            str(choice)
            for each in self.actions
            if not each.option_strings
            for choice in each.choices or ()
        ]

    @property
    def takes_files(self) -> bool:
        """Whether the command's arguments are files."""
        return any(_is_file(each) for each in self.actions if not each.option_strings)

    @property
    def options(self) -> list[argparse.Action]:
        """Options of the command."""
        return [each for each in self.actions if each.option_strings]


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Prints a script. bash: add `source <(tacit completion bash)` to ~/.bashrc. "
        "zsh: add "
        "`source <(tacit completion zsh)` to ~/.zshrc, after compinit. fish: "
        "`tacit completion fish > ~/.config/fish/completions/tacit.fish`.",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")
    parser.set_defaults(command=run)


def run(parsed: argparse.Namespace) -> None:
    print(SHELLS[parsed.shell](list(_commands("tacit", parsed.whole))), end="")


def _commands(path: str, parser: argparse.ArgumentParser) -> Iterator[Command]:
    yield Command(path, parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _commands(f"{path} {name}", inner)


def _is_file(action: argparse.Action) -> bool:
    shown = action.metavar or action.dest
    return (
        action.type is Path or action.dest == "program" or any(each in str(shown) for each in FILES)
    )


def _bash(commands: list[Command]) -> str:
    values, words = [], []
    for command in commands:
        for option in command.options:
            if option.nargs != 0:
                places = "|".join(f'"{command.path} {name}"' for name in option.option_strings)
                known = " ".join(map(str, option.choices or ())) or (
                    "@files" if _is_file(option) else ""
                )
                values.append(f'        {places}) words="{known}";;')
        names = " ".join(name for option in command.options for name in option.option_strings)
        words.append(f'            "{command.path}:-"*) words="{names}";;')
        known = "@files" if command.takes_files else " ".join(command.words)
        words.append(f'            "{command.path}:"*) words="{known}";;')
    paths = "|".join(f'"{command.path}"' for command in commands[1:])
    filled = BASH.replace("@PATHS@", paths).replace("@VALUES@", "\n".join(values))
    return filled.replace("@WORDS@", "\n".join(words))


def _zsh(commands: list[Command]) -> str:
    script = _bash(commands).replace("complete -F", "complete -o filenames -F")
    return f"autoload -U +X bashcompinit && bashcompinit\n{script}"


def _fish(commands: list[Command]) -> str:
    rules = []
    for command in commands:
        rule = f"complete -c tacit -n 'test (__tacit_path) = \"{command.path}\"'"
        if command.words:
            rules.append(f"{rule} -a {shlex.quote(' '.join(command.words))}")
        if command.takes_files:
            rules.append(f"{rule} -F")
        for option in command.options:
            names = [
                f"-l {each[2:]}" if each[:2] == "--" else f"-s {each[1:]}"
                for each in option.option_strings
            ]
            known = " ".join(map(str, option.choices or ()))
            value = (
                ["-x -a " + shlex.quote(known)]
                if known
                else ["-r -F"]
                if _is_file(option)
                else ["-x"]
            )
            rules.append(" ".join([rule, *names, *(value if option.nargs != 0 else [])]))
    paths = " ".join(shlex.quote(command.path) for command in commands[1:])
    return FISH.replace("@PATHS@", paths).replace("@RULES@", "\n".join(rules))


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
