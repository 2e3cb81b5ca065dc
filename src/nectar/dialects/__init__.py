"""One folder per kind of program: how it is read, keyed, run and hooked into."""
