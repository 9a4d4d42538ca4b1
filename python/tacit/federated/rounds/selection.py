"""Which tensors of a model travel: those whose names match patterns. The others stay personal."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tacit.errors import MisuseError
from tacit.federated.messages import counted

#: The most patterns of one kind, and the most characters of one.
MOST_PATTERNS, MOST_CHARACTERS = 256, 256

#: Names that an error lists.
LISTED = 4


@dataclass(frozen=True)
class Selection:
    """Patterns of names, as :mod:`fnmatch` reads them; upper and lower case differ.

    A tensor travels if its name matches a pattern of ``include``, or there is none, and matches no
    pattern of ``exclude``.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether all tensors travel, whatever their names."""
        return not self.include and not self.exclude

    def takes(self, name: str) -> bool:
        """Tells whether the tensor of the given name travels."""
        return (not self.include or _matches(name, self.include)) and not _matches(
            name, self.exclude
        )

    def check(self) -> None:
        """Checks that the patterns can be patterns.

        Raises:
            MisuseError: one is empty or too long, or there are too many.
        """
        for key, patterns in (("include", self.include), ("exclude", self.exclude)):
            if len(patterns) > MOST_PATTERNS:
                raise MisuseError(
                    f"{key} has {len(patterns)} patterns; at most {MOST_PATTERNS} are possible: "
                    f'join some, as in "layer?.*"'
                )
            for pattern in patterns:
                if not isinstance(pattern, str) or not 1 <= len(pattern) <= MOST_CHARACTERS:
                    raise MisuseError(
                        f"{key} has a pattern that is not a text of 1 to {MOST_CHARACTERS} "
                        'characters: give names of tensors, or patterns such as "head.*"'
                    )

    def check_names(self, names: Iterable[str]) -> None:
        """Checks that every pattern matches a name, and that something travels.

        A pattern that matches nothing is most likely a mistake, by which something travels that
        should not.

        Raises:
            MisuseError: a pattern matches no name, which the error names; or nothing travels.
        """
        if self.is_everything:
            return
        known = list(names)
        for key, patterns in (("include", self.include), ("exclude", self.exclude)):
            for pattern in patterns:
                if not any(fnmatchcase(name, pattern) for name in known):
                    raise MisuseError(
                        f"{key} has the pattern {pattern!r}, which matches no tensor; there are "
                        f"{_listed(known)}: correct it under [round], in the files of all servers "
                        "and clients"
                    )
        if not any(map(self.takes, known)):
            raise MisuseError(
                f"include and exclude leave no tensor that travels; there are {_listed(known)}: "
                "correct them under [round], in the files of all servers and clients"
            )


#: Everything travels.
EVERYTHING = Selection()


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _listed(names: list[str]) -> str:
    """Returns the first names as a text, and how many more there are."""
    shown = ", ".join(names[:LISTED])
    more = len(names) - LISTED
    return f"{shown} and {counted(more, 'other')}" if more > 0 else shown or "none"
