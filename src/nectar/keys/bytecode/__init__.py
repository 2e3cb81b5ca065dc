"""From a code object to its template: a normal form that does not know yet what its names refer to.

    decode.py    bytes -> instructions (version of Python, caches, extended arguments vanish)
    flow.py      instructions -> blocks (offsets, jump encodings, unreachable code, empty handlers vanish)
    symbolic.py  blocks -> operations on values (the stack and local names vanish); rules.py: one rule an instruction
    template.py  operations -> template (unused values, copies, layout of blocks vanish)

Whoever builds a stronger normal form replaces template.py's last step and raises the scheme version.
"""
