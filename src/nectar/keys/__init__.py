"""From functions and values to fingerprints: pure, no I/O but reading what is installed."""
