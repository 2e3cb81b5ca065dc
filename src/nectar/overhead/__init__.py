"""What Nectar costs a program, and how it stays out of the way of programs that it cannot help.

`ledger` accounts for time: Nectar's own, the program's, and what was saved. `sites` remembers what is known of each
place in a program that runs queries. `steering` decides by both. Nothing here knows an engine or a store.
"""
