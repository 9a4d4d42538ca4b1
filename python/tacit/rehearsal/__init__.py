"""Rehearsals of a program before a real run.

They find what does not work (``check``), how exact it is (``compare``) and what it costs
(``cost``). All run the program itself on this machine, with data that need not be secret yet.
"""
