"""Which parts of a program may be answered from an earlier run.

Engines leave the order of some results open: two runs of a group-by give the same rows in two orders, and a slice of
them two different contents; two runs of a sum of floats may differ in the last bit. Whoever uses such a result in two
places must see one run of it in both: rows that are joined with their own maximum would find nothing. Law: if the
undetermined part of a result is used in several places, it is answered as a whole or not at all: the part itself, or
something that all its uses lead through.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nectar.program.tree import Node, Program


def reusable(program: Program) -> list[bool]:
    """For each node, whether its result may come from an earlier run while the rest is computed."""
    if any(node.acts for node in program.nodes):
        return [False] * len(program.nodes)
    allowed = [not node.refusal for node in program.nodes]
    for branch in _fickle(program):
        for number in _part_of_its_uses(program, branch):
            allowed[number] = False
    return allowed


def answerable(programs: Sequence[Program], *, beside_given: bool = False) -> list[bool]:
    """For each of several programs that run as one, whether its whole result may come from an earlier run.

    Whoever answers one hands the answer to all others that contain it. beside_given: something runs with them as it was
    given, which nothing can be handed to.
    """
    together, roots = _together(programs)
    apart = {number for branch in _fickle(together) for number in _part_of_its_uses(together, branch)}
    return [
        root not in apart and (not beside_given or is_determined(program))
        for root, program in zip(roots, programs, strict=True)
    ]


def is_determined(program: Program) -> bool:
    """Whether two runs give the same everywhere, the order of rows included."""
    return not any(run_dependent(program)[0])


def _together(programs: Sequence[Program]) -> tuple[Program, list[int]]:
    """The programs as one, in which each computation stands once; and the number of the root of each."""
    nodes: list[Node] = []
    by_key: dict[bytes, int] = {}
    roots: list[int] = []
    for program in programs:
        new: list[int] = []
        for node in program.nodes:
            known = None if node.refusal else by_key.get(node.key)
            if known is None:
                known = len(nodes)
                nodes.append(replace(node, inputs=tuple(new[source] for source in node.inputs)))
                if not node.refusal:
                    by_key[node.key] = known
            new.append(known)
        roots.append(new[-1])
    return Program((*nodes, Node("", tuple(dict.fromkeys(roots)), b"", (b"",)))), roots


def _fickle(program: Program) -> list[int]:
    """Nodes that are used in several places, whose next run could be told from this one there."""
    undetermined, tainted = run_dependent(program)
    return [
        number
        for number, users in enumerate(program.users)
        if len(users) > 1 and undetermined[number] and (tainted[number] or _order_matters(program, number))
    ]


def run_dependent(program: Program) -> tuple[list[bool], list[bool]]:
    """For each node whether two runs may give it differently in order or content; and whether in content."""
    undetermined: list[bool] = []
    tainted: list[bool] = []
    for node in program.nodes:
        order, below = node.order, any(undetermined[source] for source in node.inputs)
        content = order.arbitrary or (order.sensitive and below) or any(tainted[source] for source in node.inputs)
        tainted.append(content)
        undetermined.append(content or order.scrambles or (order.carries and below))
    return undetermined, tainted


def _order_matters(program: Program, number: int) -> bool:
    """Whether anybody above depends on the order of a node."""
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


def _part_of_its_uses(program: Program, branch: int) -> list[int]:
    """Nodes that something of a branch leads to, while something else of it gets into the result past them."""
    found = []
    above, furthest = {branch}, branch
    for number in range(branch, len(program.nodes)):
        if number in above:
            if furthest > number:
                found.append(number)
            above.update(program.users[number])
            furthest = max((furthest, *program.users[number]))
    return found
