"""Planning: which parts of a program to take from the store, which to keep. Pure: no I/O, no clock, no engine."""
