"""The commands of the command line, each a file with its options, ``add``, and what it does."""

from tacit.commands import (
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
    init,
    inspect,
    operators,
    riscv,
    run,
    try_,
)

#: In the order in which ``tacit --help`` shows them.
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
    dealer,
    correlations,
    doctor,
    operators,
    certificates,
    completion,
)
