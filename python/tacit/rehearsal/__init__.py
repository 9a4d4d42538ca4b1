"""What is found out before a run: what does not work (``check``), how exact it is (``compare``),
what it costs (``cost``). All run the program itself, on this machine, with data that need not be
secret yet."""
