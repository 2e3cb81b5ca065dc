"""SQL as text: what a query reads and calls, and what other statements do to the names of a session."""
