"""Frozen nouns that all parts of Nectar share."""
