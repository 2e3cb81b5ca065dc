"""Growing streams: what was computed of their parts before is put together with what is new.

`separable` finds the steps that can be computed part by part, `cuts` where streams may be cut, `rules` how parts of a
computation are put together (rows one after the other, aggregates as states), `advance` does it. What parts alone do
not tell is made from a known result and from rows (`extension`): groups that are touched, windows not yet complete,
joins of two streams that grow.
"""
