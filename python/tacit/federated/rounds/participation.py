"""Poisson sampling: the coin by which each client decides secretly whether it counts in a round.

With ``sampling`` = q below 1 a client counts in a round with probability q. Every client joins,
trains and submits. A client that was not drawn submits zeros with the weight 0. Validation accepts
these, as it accepts any vector that is as short as its weight says.

**Why the account may include it, against those who see models only.**

- *Each client is drawn with probability q, independently of everything else.* The client tosses its
  coin once a round, when it joins, from its operating system's entropy. No server and no other
  client takes part. A submission that is repeated after a failure uses the same coin, so no failure
  can have it tossed again. That holds for every client that runs this code, whatever others do. The
  guarantee is for those clients.
- *What is revealed depends on the coins by the noisy sum alone.* Submitted words are shared, and so
  look alike. A client that was not drawn sends as many bytes after as much work, since the coin
  decides only a factor. Norms and weights of honest clients pass whether they were drawn or not.
  Minima count clients that submitted, drawn or not. The divisor is public and fixed: neither a sum
  of weights nor a number of drawn clients is opened. That is why ``sampling`` needs noise, and
  noise needs a divisor.
- *So a round is the Gaussian mechanism on a Poisson sample*: it reveals the sum over the clients
  that were drawn, each of which adds a vector of at most one bound, plus discrete Gaussians of all
  parts (see ``noise``). What is computed from it is public arithmetic. Each round tosses new coins,
  and rounds compose.
- *No client takes the place of another one.* All clients may submit until the deadline. A round
  that ends with ``enough`` would wait for another client if one were missing. Then neighbouring
  sums differ by two vectors, and those who submit are no Poisson sample. So ``enough`` does not go
  with noise.

**Against a server** the account ignores sampling, although servers do not see who was drawn. They
know who submitted, and an account in which sampling hides no client holds whatever else they learn.
That account also holds against anyone to whom a server passes on what it sees.

A client's program does not learn whether the client was drawn: what the program does next, or says
to others, must not depend on it.
"""

import os
from dataclasses import replace

from tacit.federated.rounds.client_update import Outgoing

#: Bits of a coin. The probability is rounded down to them, so that no client counts more often
#: than stated.
BITS = 53


def is_drawn(sampling: float) -> bool:
    """Tosses the coin that decides whether a client counts in a round."""
    coin = int.from_bytes(os.urandom(8), "little") >> (64 - BITS)
    return coin < int(sampling * 2.0**BITS)


def zeroed(outgoing: Outgoing) -> Outgoing:
    """Returns what a client that was not drawn sends: zeros, of weight 0."""
    return replace(outgoing.by(0.0), weight=0.0)
