"""The commands of the command line, each a file with its options, ``add``, and what it does."""

from tacit.commands import bench, certificates, correlations, dealer, demo, doctor, run

#: In the order in which ``tacit --help`` shows them.
COMMANDS = (demo, bench, run, dealer, correlations, doctor, certificates)
