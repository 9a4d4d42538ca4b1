"""The commands of the command line, each a file with its options, ``add``, and what it does."""

from tacit.commands import (
    bench,
    certificates,
    check,
    compare,
    correlations,
    cost,
    dealer,
    demo,
    doctor,
    federated,
    operators,
    riscv,
    run,
)

#: In the order in which ``tacit --help`` shows them.
COMMANDS = (
    demo,
    check,
    compare,
    cost,
    bench,
    federated,
    riscv,
    run,
    dealer,
    correlations,
    doctor,
    operators,
    certificates,
)
