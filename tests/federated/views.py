"""What a party holds and sees while servers compute, and whether it says anything."""

import inspect
from typing import Any

import numpy as np

import tacit
from tacit import _core

Array = np.ndarray[Any, Any]

#: Clients who send the same: one bit of a lane each. A prime, by which their dimension is known.
CLIENTS = 67

#: Most often that the rarer bit of a lane may be missing, and the most standard deviations of a
#: word's ones.
RARE, DEVIATIONS = 3, 8.0

#: Operations that show what they give, and those of public values.
SHOWN, PUBLIC = ("reveal", "reveal_bits"), ("trivial", "trivial_bits")

#: The arguments of each operation of a core, read once: Python 3.11 cannot read them in several
#: threads.
PLACES = {
    name: list(inspect.signature(method).parameters)[1:]
    for name, method in inspect.getmembers(_core.Session, inspect.ismethoddescriptor)
    if not name.startswith("_")
}


class Watched:
    """A session's core that keeps what its operations give to this party: components, which have to
    be uniform, and what is shown to it."""

    def __init__(self, core: Any, *, components: bool) -> None:
        self._core = core
        self._keeps_components = components
        #: Bits of words and single bits, (clients, bits).
        self.lanes: list[Array] = []
        self.shown: list[Any] = []
        #: Of noise: this party's components before and after.
        self.noise: list[tuple[list[Array], list[Array]]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._core, name)
        if not callable(method):
            return method

        def watched(*args: Any) -> Any:
            before = [part.copy() for part in args[0]] if name == "add_noise" else []
            result = method(*args)
            self._keep(name, args, result, before)
            return result

        return watched

    def _keep(self, name: str, args: tuple[Any, ...], result: Any, before: list[Any]) -> None:
        if name == "add_noise":
            self.noise.append((before, [part.copy() for part in args[0]]))
            return
        if name in ("broadcast", "gather"):
            self.shown.append(result if name == "broadcast" else b"".join(result))
            return
        places = PLACES[name]
        if "out" not in places:
            return
        out = args[places.index("out")]
        if name in SHOWN:
            self.shown.append(None if out is None else out.copy())
        elif self._keeps_components and name not in PUBLIC:
            for part in out:
                self.keep(part)

    def keep(self, part: Array) -> None:
        """Components of words or bits of all clients, in whatever dimension these are."""
        by_client = np.moveaxis(part, part.shape.index(CLIENTS), 0).reshape(CLIENTS, -1)
        if part.dtype == np.int64:
            by_client = np.unpackbits(np.ascontiguousarray(by_client).view(np.uint8), axis=1)
        self.lanes.append(by_client.copy())

    def taken(self) -> tuple[str | None, list[Any]]:
        """What components say that were kept since the last time, and what was shown."""
        said, shown = says_something(self.lanes), self.shown
        self.lanes, self.shown = [], []
        return said, shown


def watch(*, components: bool = True) -> Watched:
    """Has the session of this party watched from here on; components are kept of so many clients
    only."""
    session = tacit.session()
    watched = Watched(session.core, components=components)
    session.core = watched  # type: ignore[assignment]
    return watched


def says_something(pieces: list[Array]) -> str | None:
    """The first sign that components are not uniform: a bit that hardly changes, a word of too many
    or too few ones, two bits that always agree or never. By chance once in a billion times."""
    lanes = np.concatenate(pieces, axis=1)
    ones = lanes.sum(0, dtype=np.int64)
    if bool((np.minimum(ones, CLIENTS - ones) < RARE).any()):
        return "a bit that hardly changes"
    by_word = ones[: len(ones) // 64 * 64].reshape(-1, 64).sum(1)
    if bool((abs(by_word - 32 * CLIENTS) > DEVIATIONS * 4 * CLIENTS**0.5).any()):
        return "a word of too many or too few ones"
    same = np.packbits(lanes ^ lanes[:1], axis=0)
    if len(np.unique(same, axis=1).T) < same.shape[1]:
        return "bits that agree"
    return None
