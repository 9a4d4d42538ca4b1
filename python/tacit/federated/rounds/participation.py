"""Chance in who counts (Poisson sampling), which clients toss by themselves and tell nobody.

With ``sampling`` = q below 1 a client counts in a round with probability q. It joins, trains and
hands in as all others do; if it was not drawn, what it hands in is zeros with the weight 0, which
validation lets through as it does any vector that is as short as its weight says.

**Why the account may count on it, against those who see models only.**

- *Each client is drawn with q, independently of all else.* The coin is tossed once a round, when
  the client joins, from its operating system's entropy; no server and no other client has a part in
  it. Handing in again after a failure is of the same coin, so no failure can have it tossed anew.
  That holds for every client that runs this, whatever others do; the promise is made to those.
- *What is revealed depends on the coins by the noisy sum alone.* Words that are handed in are
  shared, and so look alike; a client that was not drawn sends as many bytes after as much work,
  since the coin decides no more than a factor. Norms and weights of honest clients pass whether
  they were drawn or not. Minima count clients that handed in, drawn or not. The divisor is public
  and fixed: neither a sum of weights nor a number of drawn clients is opened. That is why
  ``sampling`` goes with noise alone, and noise with a divisor.
- *So a round is the Gaussian mechanism on a Poisson sample*: the sum over those who were drawn, of
  which each adds a vector of one bound at most, and discrete Gaussians of all parts (see
  ``noise``); what is made of it is public arithmetic. Rounds toss anew, and compose.

**Against a server** chance counts for nothing in the account, though servers do not see who was
drawn: they know who handed in, and an account in which chance hides nobody holds whatever else they
learn. It is the one that counts for whoever a server tells what it sees.

A client's program is not told whether it was drawn: what it does next, or says to others, must not
depend on it.
"""

import os
from dataclasses import replace

from tacit.federated.rounds.client_update import Outgoing

#: Coins have this many bits; a chance is rounded down to them, so that nobody counts more often
#: than is said.
BITS = 53


def is_drawn(sampling: float) -> bool:
    """Whether a client counts in a round."""
    coin = int.from_bytes(os.urandom(8), "little") >> (64 - BITS)
    return coin < int(sampling * 2.0**BITS)


def withheld(outgoing: Outgoing) -> Outgoing:
    """What a client sends that was not drawn: zeros, of weight 0."""
    return replace(outgoing.by(0.0), weight=0.0)
