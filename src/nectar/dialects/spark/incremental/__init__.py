"""Growing files: what was computed of the files of a read before is put together with what is new.

`separable` finds the relations that can be computed file by file, `streams` what there is to be cut, `aggregates` how
aggregates are made from states, `parts` how parts of a computation are put together, `growing` does it. Which known
parts are used, and which states are kept, is decided by `rewrite/`, as for every engine.
"""
