"""Finds which modules of a Rust crate use which, from the text, without a compiler.

Comments, literals and tests are left out. A path such as ``crate::a::b`` is followed from module to
module, and through re-exports, to the module where its last name is defined.
"""

import re
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]

#: Comments, raw strings, strings and characters, whose text may look like code.
_COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/|r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\[^']*|[^'\\])'",
    re.DOTALL,
)
_TEST = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*([;{])")
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|super)(?:\s*::\s*\w+)+")
_TOKEN = re.compile(r"::|[{},*]|\w+")


def without_tests(text: str) -> tuple[str, set[str]]:
    """Returns the code of a file without comments, literals and test modules, and the names of the
    test modules in other files."""
    code = _COMMENT_OR_LITERAL.sub(lambda match: "\n" * match.group().count("\n"), text)
    elsewhere = set()
    while test := _TEST.search(code):
        end = test.end()
        if test[2] == ";":
            elsewhere.add(test[1])
        else:
            depth = 1
            while depth and end < len(code):
                depth += {"{": 1, "}": -1}.get(code[end], 0)
                end += 1
        code = code[: test.start()] + code[end:]
    return code, elsewhere


def expanded(tree: str) -> list[tuple[Module, str]]:
    """Returns the paths of a use tree such as ``a::{b, c::d as e}``, each with the name that it
    binds."""
    found: list[tuple[Module, str]] = []
    tokens = _TOKEN.findall(tree)
    path: list[str] = []
    outer: list[list[str]] = []

    def end() -> None:
        if len(path) > len(outer[-1] if outer else []):
            names = path[: path.index("as")] if "as" in path else path
            names = names[:-1] if names[-1] == "self" and len(names) > 1 else names
            found.append((tuple(names), path[-1] if "as" in path else names[-1]))

    for token in tokens:
        if token == "{":
            outer.append(list(path))
        elif token in ",}":
            end()
            path = list(outer[-1]) if outer else []
            if token == "}":
                outer.pop()
        elif token != "::":
            path.append(token)
    end()
    return found


class Crate:
    """Modules of a crate, by their paths; the root is the empty path."""

    def __init__(self, source: Path) -> None:
        self.code: dict[Module, str] = {}
        self.files: dict[Module, Path] = {}
        tests: set[Module] = set()
        for path in sorted(source.rglob("*.rs")):
            parts = path.relative_to(source).with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("lib", "mod") else parts
            self.code[module], elsewhere = without_tests(path.read_text())
            self.files[module] = path
            tests |= {(*module, name) for name in elsewhere}
        for module in list(self.code):
            if any(module[: len(test)] == test for test in tests):
                del self.code[module]
        self._names = {module: dict(self._imports(module)) for module in self.code}

    def _imports(self, module: Module) -> Iterator[tuple[str, Module]]:
        """Yields the names that a module brings into its scope, with what they stand for."""
        for use in _USE.finditer(self.code[module]):
            for path, name in expanded(use[1]):
                if absolute := self._absolute(module, path):
                    yield name, absolute

    def _absolute(self, module: Module, path: Module) -> Module | None:
        """Returns a path from the crate's root, or ``None`` for a path of another crate."""
        if path[0] == "crate":
            return path[1:]
        base = module
        if path[0] not in ("super", "self"):
            return (*module, *path) if (*module, path[0]) in self.code else None
        while path and path[0] in ("super", "self"):
            base = base[:-1] if path[0] == "super" else base
            path = path[1:]
        return (*base, *path)

    def _defined(self, path: Module, depth: int = 0) -> Module:
        """Returns the module that defines what a path names."""
        module: Module = ()
        for at, name in enumerate(path):
            if (*module, name) in self.code:
                module = (*module, name)
            elif name in self._names.get(module, {}) and depth < 16:
                return self._defined((*self._names[module][name], *path[at + 1 :]), depth + 1)
            else:
                break
        return module

    def uses(self, module: Module) -> set[Module]:
        """Returns the modules that a module uses, perhaps including itself."""
        code = self.code[module]
        paths = [path for use in _USE.finditer(code) for path, _ in expanded(use[1])]
        paths += [tuple(re.findall(r"\w+", path)) for path in _PATH.findall(_USE.sub("", code))]
        absolute = [self._absolute(module, path) for path in paths]
        return {self._defined(path) for path in absolute if path is not None}

    def siblings(self) -> dict[Module, dict[str, set[str]]]:
        """Returns for each folder which of its modules use which. Modules below a module count as
        that module."""
        graphs: dict[Module, dict[str, set[str]]] = {}
        for module in self.code:
            for at in range(len(module)):
                graphs.setdefault(module[:at], {}).setdefault(module[at], set())
            for used in self.uses(module):
                shared = next(
                    (at for at, (a, b) in enumerate(zip(module, used, strict=False)) if a != b),
                    None,
                )
                if shared is not None:
                    graphs[module[:shared]][module[shared]].add(used[shared])
        return graphs


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Returns modules each of which uses the next, and the last the first, or ``None``."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str] | None:
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return None
        for other in sorted(graph.get(node, ())):
            if found := visit(other, [*path, node]):
                return found
        done.add(node)
        return None

    return next((found for node in sorted(graph) if (found := visit(node, []))), None)
