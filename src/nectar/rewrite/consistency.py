"""Which parts of a program may be answered from an earlier run.

Engines leave the order of some results open: two runs of a group-by give the same rows in two orders, and a slice of
them two different contents. Whoever uses such a result in two places must see one run of it in both. Law: if the
undetermined part of a result is used in several places, it is answered as a whole or not at all: the part itself, or
something that all its uses lead through.
"""

from __future__ import annotations

from nectar.program.tree import Program


def reusable(program: Program) -> list[bool]:
    """For each node, whether its result may come from an earlier run while the rest is computed."""
    undetermined = _undetermined(program)
    fickle = [
        number
        for number in range(len(program.nodes))
        if undetermined[number] and len(program.users[number]) > 1 and _is_noticed(program, number, undetermined)
    ]
    return [
        not node.refusal and all(_covers(program, number, branch) for branch in fickle)
        for number, node in enumerate(program.nodes)
    ]


def _covers(program: Program, number: int, branch: int) -> bool:
    """Whether a node has nothing of a branch inside, or all of its uses."""
    return branch not in program.below(number) or not program.reaches_root_without(branch, number)


def _undetermined(program: Program) -> list[bool]:
    """For each node, whether two runs may give it in different orders, or with different content."""
    found: list[bool] = []
    for node in program.nodes:
        below = any(found[source] for source in node.inputs)
        # Content that depends on an undetermined order is undetermined too, whatever is done with it later.
        found.append(node.order.scrambles or (below and (node.order.carries or node.order.sensitive)))
    return [
        known or any(_is_tainted(program, source, found) for source in node.inputs)
        for known, node in zip(found, program.nodes, strict=True)
    ]


def _is_tainted(program: Program, number: int, undetermined: list[bool]) -> bool:
    """Whether the content of a node depends on an order that is not determined."""
    return any(
        program.nodes[inner].order.sensitive and any(undetermined[source] for source in program.nodes[inner].inputs)
        for inner in program.below(number)
    )


def _is_noticed(program: Program, number: int, undetermined: list[bool]) -> bool:
    """Whether anybody above, or the content itself, depends on the undetermined order."""
    if _is_tainted(program, number, undetermined):
        return True
    pending, seen = list(program.users[number]), set()
    while pending:
        user = pending.pop()
        if user in seen:
            continue
        seen.add(user)
        order = program.nodes[user].order
        if order.sensitive:
            return True
        if order.carries:
            pending.extend(program.users[user])
    return False
