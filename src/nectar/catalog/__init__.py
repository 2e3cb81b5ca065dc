"""The catalog: which results are known, who uses them, what they are worth, and what may be deleted.

It knows fingerprints and bytes, never programs.
"""
