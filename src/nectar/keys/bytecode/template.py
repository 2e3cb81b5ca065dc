"""Symbolic blocks to the template of a code object: the normal form before names are resolved.

In: the symbolic execution of a code object. Out: blocks in the order control first reaches them, without empty ones,
without values nobody uses, with merges only where different values really meet. Values keep the numbers of the
symbolic execution; whoever renders a template numbers them anew, so that those numbers do not matter.

Law: two templates that render to the same bytes, with the same objects behind their names, do the same for arguments
of every type, up to frame introspection and the moment at which unused objects die.
"""

from __future__ import annotations

import types
from typing import Any, Final

from msgspec import Struct

from nectar.keys.bytecode import symbolic
from nectar.keys.bytecode.operation import CAUGHT, CONST, FREE, UNBOUND, Operation
from nectar.keys.bytecode.symbolic import Symbolic

RETURN: Final = -1
_REMEMBERED: Final = 20_000  # templates kept; a template takes a few KB


class Edge(Struct, eq=False):
    """Where control goes and the values it carries to the merges there (or the value returned, for RETURN)."""

    target: int
    values: tuple[int, ...]


class Block(Struct, eq=False):
    """Operations in order, then a test of a value that chooses an edge."""

    merges: tuple[int, ...]
    operations: tuple[Operation, ...]
    test: str
    value: int
    edges: tuple[Edge, ...]
    handler: int | None
    handler_stack: tuple[int, ...]


class Template(Struct, eq=False):
    """A code object in normal form. kinds and data describe values, see operation.py; then, what it mentions."""

    code: types.CodeType
    kinds: list[int]
    data: list[object]
    blocks: tuple[Block, ...]
    stored_free: frozenset[str] = frozenset()
    stored_global: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    keywords: frozenset[str] = frozenset()
    spreads: bool = False  # whether calls pass keywords that only running would tell
    strings: frozenset[str] = frozenset()  # constant text that operations are given


_templates: dict[int, Template] = {}


def template_of(code: types.CodeType) -> Template:
    """The template of code; remembered, since code objects do not change."""
    known = _templates.get(id(code))
    if known is None:
        if len(_templates) >= _REMEMBERED:
            _templates.clear()
        run = symbolic.run(code)
        shaped = _straight(run) if len(run.blocks) == 1 else _Shaper(run).blocks()
        known = _templates[id(code)] = _describe(run, shaped)
    return known


def _straight(run: Symbolic) -> tuple[Block, ...]:
    """Code without branches: nothing merges, so that only unused values have to go. (Most functions are like this.)"""
    block = run.blocks[0]
    kind, returned = block.ending
    kept = _needed(block.operations, returned, run.kinds) if run.doubtful else block.operations
    edges = (Edge(RETURN, (returned,)),) if kind == "return" else ()
    test = "goto" if kind == "return" else kind
    return (Block((), tuple(kept), test, -1, edges, None, ()),)


def _needed(operations: list[Operation], returned: int, kinds: list[int]) -> list[Operation]:
    used = {returned}
    kept: list[Operation] = []
    for operation in reversed(operations):
        needed = not operation.droppable or operation.result in used
        if needed and (operation.name != "CHECK_BOUND" or kinds[operation.operands[0]] == UNBOUND):
            used.update(operation.operands)
            kept.append(operation)
    kept.reverse()
    return kept


_Ways = tuple[str, int, tuple[Edge, ...]]  # how control leaves a block: the test, the value tested, the edges
_TESTS: Final = {"true": "truth", "false": "truth", "some": "none"}  # what is tested, by what the jump is taken for


class _Shaper:
    """Brings the blocks of code with branches into the form of a template."""

    def __init__(self, run: Symbolic) -> None:
        self.run = run
        self.brought = self._brought()
        self.alias = self._trivial_merges()
        self.merges = {
            start: [merge for merge, _ in block.merges if merge in self.brought] for start, block in run.blocks.items()
        }
        self.maybe_unbound = self._maybe_unbound() if run.doubtful else set()
        self.operations = {start: self._kept(block.operations) for start, block in run.blocks.items()}
        self.uses: list[int] = []
        self.slots: dict[int, int] = {}

    # merges

    def _brought(self) -> dict[int, list[int]]:
        """What each predecessor brings to each merge."""
        blocks = self.run.blocks
        return {
            merge: [
                blocks[before].exits[number].stack[at] if kind == "stack" else blocks[before].locals[at]
                for before, number in self.run.incoming[start]
            ]
            for start, block in blocks.items()
            for merge, (kind, at) in block.merges
        }

    def _trivial_merges(self) -> dict[int, int]:
        """Merges to which every predecessor brings the same value, with that value; they are forgotten."""
        alias: dict[int, int] = {}

        def real(value: int) -> int:
            while value in alias:
                value = alias[value]
            return value

        changed = bool(self.brought)
        while changed:
            changed = False
            for merge, values in list(self.brought.items()):
                others = set(map(real, values)) - {merge}
                if len(others) == 1:
                    alias[merge] = others.pop()
                    del self.brought[merge]
                    changed = True
        return {merge: real(merge) for merge in alias}

    def real(self, value: int) -> int:
        """The value that value is a copy of."""
        return self.alias.get(value, value)

    def _real_values(self, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(self.real, values)) if self.alias else values

    def _maybe_unbound(self) -> set[int]:
        found = {value for value, kind in enumerate(self.run.kinds) if kind == UNBOUND}
        changed = bool(found and self.brought)
        while changed:
            more = {
                merge for merge, values in self.brought.items()
                if merge not in found and any(self.real(value) in found for value in values)
            }  # fmt: skip
            found |= more
            changed = bool(more)
        return found

    # operations

    def _kept(self, operations: list[Operation]) -> list[Operation]:
        if not self.alias and not self.run.doubtful:
            return operations
        kept = []
        for operation in operations:
            operands = self._real_values(operation.operands)
            if operation.name == "CHECK_BOUND" and operands[0] not in self.maybe_unbound:
                continue
            if operands != operation.operands:
                operation = self._changed(operation, operation.arg, operands)
            kept.append(operation)
        return kept

    def _changed(self, old: Operation, arg: object, operands: tuple[int, ...]) -> Operation:
        """An operation in the place of another, noted as the one that gives its results."""
        new = Operation(old.name, arg, operands, old.result, old.results, old.offset, old.droppable)
        for result in range(new.result, new.result + new.results):
            self.run.data[result] = new
        return new

    def _is_only_returned(self, merge: int) -> bool:
        """Whether nothing but one return takes what meets in a merge."""
        if not self.uses:
            self.uses = self._all_uses()
        return self.uses.count(merge) == 1

    def _all_uses(self) -> list[int]:
        """Every value, once for each time it is used."""
        values: list[int] = []
        for start, block in self.run.blocks.items():
            for operation in self.operations[start]:
                values.extend(operation.operands)
            values.append(self.real(block.ending[1]))
            if block.handler is not None:
                values.extend(map(self.real, block.handler[1]))
        for brought in self.brought.values():
            values.extend(map(self.real, brought))
        return values

    # edges

    def _edge(self, start: int, number: int) -> Edge:
        """The exit of a block, followed through blocks that do nothing."""
        blocks = self.run.blocks
        seen = [start]
        while True:
            target = blocks[start].exits[number].target
            merges = self.merges[target]
            values = self._carried(start, number, target) if merges else ()
            kind, returned = blocks[target].ending
            if self.operations[target] or target in seen:
                return Edge(target, values)
            if kind == "return":
                returned = self.real(returned)
                if not merges or (merges == [returned] and self._is_only_returned(returned)):
                    return Edge(RETURN, values or (returned,))
            if kind != "goto" or merges:
                return Edge(target, values)
            seen.append(target)
            start, number = target, 0

    def _carried(self, start: int, number: int, target: int) -> tuple[int, ...]:
        at = self.run.incoming[target].index((start, number))
        return tuple(self.real(self.brought[merge][at]) for merge in self.merges[target])

    # assembly

    def blocks(self) -> tuple[Block, ...]:
        """The blocks in the order control first reaches them."""
        edges = {start: self._edges(start) for start in self.run.blocks}
        chains = self._in_order(edges)
        # without merges and operations that may be dropped nobody asks
        used = self._used(edges, chains) if self.brought or self.run.doubtful else set()
        numbers = {start: at for at, start in enumerate(chains)}
        blocks = tuple([self._assemble(start, chains[start], edges, numbers, used) for start in chains])
        if CAUGHT in self.run.kinds:
            self._number_handlers(numbers)
        return blocks

    def _number_handlers(self, numbers: dict[int, int]) -> None:
        """What handlers catch is told by the number of the handler from now on, not by where it lies."""
        for value, kind in enumerate(self.run.kinds):
            if kind == CAUGHT:
                start, at = self.run.data[value]
                self.run.data[value] = (numbers.get(start, -1), at)

    def _edges(self, start: int) -> _Ways:
        block = self.run.blocks[start]
        kind, value = block.ending
        if kind == "return":
            return "goto", -1, (Edge(RETURN, (self.real(value),)),)
        found = [self._edge(start, number) for number in range(len(block.exits))]
        if kind in ("true", "none"):
            found.reverse()
        return _TESTS.get(kind, kind), self.real(value) if value >= 0 else -1, tuple(found)

    def _entered_from_one_place(self, edges: dict[int, _Ways]) -> set[int]:
        """Blocks that can be part of the block before: one edge leads there and nothing meets there."""
        once: set[int] = set()
        again = {0}
        for _, _, ways in edges.values():
            for edge in ways:
                (again if edge.target in once else once).add(edge.target)
        again.update(block.handler[0] for block in self.run.blocks.values() if block.handler is not None)
        return {start for start in once - again if start != RETURN and not self.merges[start]}

    def _chain(self, start: int, edges: dict[int, _Ways], alone: set[int]) -> list[int]:
        """A block and those that always follow it under the same handler."""
        chain = [start]
        while True:
            test, _, ways = edges[chain[-1]]
            if test != "goto" or len(ways) != 1:
                return chain
            after = ways[0].target
            if after not in alone or after in chain or not self._same_handler(start, after):
                return chain
            chain.append(after)

    def _same_handler(self, start: int, after: int) -> bool:
        one, other = self.run.blocks[start].handler, self.run.blocks[after].handler
        if one is None or other is None:
            return one is other
        return one[0] == other[0] and self._real_values(one[1]) == self._real_values(other[1])

    def _in_order(self, edges: dict[int, _Ways]) -> dict[int, list[int]]:
        """Chains of blocks by their first, in the order control first reaches them."""
        alone = self._entered_from_one_place(edges)
        chains: dict[int, list[int]] = {}
        pending = [0]
        while pending:
            start = pending.pop()
            if start in chains or start == RETURN:
                continue
            chain = chains[start] = self._chain(start, edges, alone)
            handler = self.run.blocks[start].handler
            if handler is not None:
                pending.append(handler[0])
            pending.extend([edge.target for edge in reversed(edges[chain[-1]][2])])
        return chains

    def _used(self, edges: dict[int, _Ways], chains: dict[int, list[int]]) -> set[int]:
        """Values that matter: used by an effect, a test or a result, or by a value that matters."""
        needs: dict[int, list[int]] = {}
        pending: list[int] = []
        for start, chain in chains.items():
            for each in chain:
                for operation in self.operations[each]:
                    if operation.droppable:
                        needs[operation.result] = list(operation.operands)
                    else:
                        pending.extend(operation.operands)
            _, value, ways = edges[chain[-1]]
            pending.append(value)
            handler = self.run.blocks[start].handler
            if handler is not None:
                pending.extend(map(self.real, handler[1]))
            for edge in ways:
                if edge.target == RETURN:
                    pending.extend(edge.values)
                else:
                    for merge, brought in zip(self.merges[edge.target], edge.values, strict=True):
                        needs.setdefault(merge, []).append(brought)
        used: set[int] = set()
        while pending:
            value = pending.pop()
            if value not in used:
                used.add(value)
                pending.extend(needs.get(value, ()))
        return used

    def _assemble(
        self, start: int, chain: list[int], edges: dict[int, _Ways],
        numbers: dict[int, int], used: set[int],
    ) -> Block:  # fmt: skip
        operations = [
            operation
            for each in chain
            for operation in self.operations[each]
            if not operation.droppable or operation.result in used
        ]
        if self.run.slots:
            operations = list(map(self._renumber_slot, operations))
        test, value, ways = edges[chain[-1]]
        handler = self.run.blocks[start].handler
        return Block(
            tuple(merge for merge in self.merges[start] if merge in used),
            tuple(operations),
            test,
            value,
            tuple(self._number_edge(edge, numbers, used) for edge in ways),
            None if handler is None else numbers[handler[0]],
            () if handler is None else self._real_values(handler[1]),
        )

    def _renumber_slot(self, operation: Operation) -> Operation:
        if not operation.name.endswith("_SLOT"):
            return operation
        slot: int = operation.arg  # type: ignore[assignment]
        return self._changed(operation, self.slots.setdefault(slot, len(self.slots)), operation.operands)

    def _number_edge(self, edge: Edge, numbers: dict[int, int], used: set[int]) -> Edge:
        if edge.target == RETURN:
            return edge
        pairs = zip(self.merges[edge.target], edge.values, strict=True)
        return Edge(numbers[edge.target], tuple(value for merge, value in pairs if merge in used))


def _describe(run: Symbolic, blocks: tuple[Block, ...]) -> Template:
    """The template with what the code mentions by name, for those who look for it."""
    template = Template(run.code, run.kinds, run.data, blocks)
    for block in blocks:
        for operation in block.operations:
            if operation.name in _MENTIONING:
                _mention(operation, template)
    if str in map(type, run.code.co_consts):
        template.strings = _strings(run, blocks)
    return template


def _strings(run: Symbolic, blocks: tuple[Block, ...]) -> frozenset[str]:
    """Constant text that operations are given."""
    kinds, data, constants = run.kinds, run.data, run.code.co_consts
    return frozenset(
        constant
        for block in blocks
        for operation in block.operations
        for value in operation.operands
        if kinds[value] == CONST and type(constant := constants[data[value]]) is str
    )


_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM"})
_GLOBALS: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_CELLS: Final = frozenset({"STORE_CELL", "DELETE_CELL"})
_MENTIONING: Final = _ATTRIBUTES | _GLOBALS | _CELLS | {"CALL", "CALL_EX", "LOAD_SUPER_ATTR"}


def _mention(operation: Operation, template: Template) -> None:
    """Notes the names that an operation mentions."""
    name: str = operation.name
    arg: Any = operation.arg
    if name == "CALL":
        if arg:
            template.keywords = template.keywords.union(arg)
    elif name in _ATTRIBUTES:
        if arg not in template.attributes:
            template.attributes |= {arg}
    elif name in _GLOBALS:
        template.stored_global |= {arg}
    elif name == "LOAD_SUPER_ATTR":
        template.attributes |= {arg[0]}
    elif name == "CALL_EX":
        template.spreads = template.spreads or bool(arg)
    elif template.kinds[operation.operands[0]] == FREE:
        template.stored_free |= {template.data[operation.operands[0]]}  # type: ignore[arg-type]
