"""A party's view while servers compute: what it holds and sees, and a test whether that is
uniform."""

import inspect
from typing import Any

import numpy as np

import tacit
from tacit import _core

Array = np.ndarray[Any, Any]

#: Clients that send equal values; each is one bit of a lane. A prime number, so that the dimension
#: of clients is recognised by its size.
CLIENTS = 67

#: The rarer bit of a lane must occur at least RARE times. The ones of a word may deviate by at most
#: DEVIATIONS standard deviations.
RARE, DEVIATIONS = 3, 8.0

#: Operations that show their result, and operations on public values.
SHOWN, PUBLIC = ("reveal", "reveal_bits"), ("trivial", "trivial_bits")

#: Parameters of each operation of the core, read only once, since Python 3.11 cannot read them in
#: several threads.
PLACES = {
    name: list(inspect.signature(method).parameters)[1:]
    for name, method in inspect.getmembers(_core.Session, inspect.ismethoddescriptor)
    if not name.startswith("_")
}


class Watched:
    """A session's core that records the results of its operations at this party.

    These are components, which must be uniform, and everything that is shown to the party.
    """

    def __init__(self, core: Any, *, components: bool) -> None:
        self._core = core
        self._keeps_components = components
        #: Bits of words and single bits, (clients, bits).
        self.lanes: list[Array] = []
        self.shown: list[Any] = []
        #: This party's components before and after each addition of noise.
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
        if name == "public_coin":
            self.shown.append(result)
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
        """Records components of words or bits of all clients, in any dimension."""
        by_client = np.moveaxis(part, part.shape.index(CLIENTS), 0).reshape(CLIENTS, -1)
        if part.dtype == np.int64:
            by_client = np.unpackbits(np.ascontiguousarray(by_client).view(np.uint8), axis=1)
        self.lanes.append(by_client.copy())

    def taken(self) -> tuple[str | None, list[Any]]:
        """Returns the sign that the recorded components are not uniform, if any, and what was shown
        since the last call."""
        said, shown = says_something(self.lanes), self.shown
        self.lanes, self.shown = [], []
        return said, shown


def watch(*, components: bool = True) -> Watched:
    """Records the session of this party from now on. Components are recorded only for CLIENTS
    clients."""
    session = tacit.session()
    watched = Watched(session.core, components=components)
    session.core = watched  # type: ignore[assignment]
    return watched


def says_something(pieces: list[Array]) -> str | None:
    """Returns the first sign that components are not uniform, or ``None``.

    Signs are a bit that hardly changes, a word with too many or too few ones, and two bits that
    always or never agree. By chance this happens once in a billion times.
    """
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
