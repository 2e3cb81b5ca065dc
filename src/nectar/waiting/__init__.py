"""Waiting for what may never answer: so long and no longer, and not again and again."""
