"""Commands of the command line. Each is a file with its options, ``add``, and its action,
``run``."""

from tacit.commands import (
    attest,
    bench,
    certificates,
    check,
    compare,
    compile,  # noqa: A004
    completion,
    correlations,
    cost,
    dealer,
    demo,
    doctor,
    federated,
    gateway,
    init,
    inspect,
    operators,
    riscv,
    run,
    try_,
)

#: Commands in the order in which ``tacit --help`` shows them.
COMMANDS = (
    demo,
    init,
    check,
    compare,
    cost,
    compile,
    inspect,
    try_,
    bench,
    federated,
    riscv,
    run,
    gateway,
    dealer,
    correlations,
    doctor,
    operators,
    certificates,
    attest,
    completion,
)
