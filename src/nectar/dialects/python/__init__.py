"""Plain Python functions: a call is a program."""
