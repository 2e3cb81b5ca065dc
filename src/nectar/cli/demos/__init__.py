"""Demonstrations: small programs that are run, explained, and checked while they are shown."""
