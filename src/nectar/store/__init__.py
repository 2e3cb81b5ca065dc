"""The store: folders of immutable files, one for each result, that appear whole or not at all.

`nectar.store.store.Store` is the way in. A result is staged (`commit.py`), published under a location that is never
used twice, opened (`read.py`), verified (`verify.py`), and removed (`remove.py`). The store knows bytes and locations;
which key a location belongs to, and how long it is worth keeping, is the catalog's to know.

Laws: a location without a manifest is not there. Files are only ever renamed into place and never changed, so a
reader that has one open keeps it. Importing this package imports no data library and no fsspec.
"""
