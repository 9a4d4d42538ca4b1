"""From a model in today's formats to a program that parties agree on before anything is shared."""
