"""Random small functions, edits of them, and what they do.

A function is a tree of statements over a few variables; it talks to the world through one parameter, `t`: every call
of it is noted, and a plan decides what it gives or raises. Two functions behave the same on a plan if they make the
same calls with the same arguments and end the same way.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from random import Random
from typing import Any

NAMES = ("a", "b", "x", "y", "z")
ERRORS = ("KeyError", "ValueError", "LookupError", "Exception", "(KeyError, TypeError)", "TypeError")
_ADDRESS = re.compile(" at 0x[0-9a-f]+")
OPERATORS = ("+", "-", "*", "<", "<=", "==", "and", "or", "is", "in", "//", "%")


class Node:
    """A statement: its kind, the words in it, and the blocks below it."""

    __slots__ = ("blocks", "kind", "words")

    def __init__(self, kind: str, words: list[Any], blocks: list[list[Node]]) -> None:
        self.kind = kind
        self.words = words
        self.blocks = blocks


class Maker:
    """Makes functions from a source of randomness."""

    def __init__(self, random: Random, generator: bool = False, anonymous: bool = False) -> None:
        self.random = random
        self.generator = generator
        self.anonymous = anonymous  # no functions, texts, caught errors: names of functions would show in them
        self.calls = 0

    def name(self) -> str:
        return self.random.choice(NAMES)

    def call(self) -> str:
        self.calls += 1
        return f"t({self.calls}, {self.expression(1)})" if self.random.random() < 0.5 else f"t({self.calls})"

    def expression(self, depth: int = 2) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.35:
            return self.name()
        if pick < 0.5:
            return str(self.random.randrange(4))
        if pick < 0.7:
            return self.call()
        if pick < 0.9:
            operator = self.random.choice(OPERATORS[:-1] if self.anonymous else OPERATORS)  # % may make a text
            return f"({self.expression(depth - 1)} {operator} {self.expression(depth - 1)})"
        found = self.random.choice(
            (
                f"({self.name()} if {self.expression(depth - 1)} else {self.expression(depth - 1)})",
                f"(not {self.expression(depth - 1)})",
                f"[{self.name()}, {self.name()}]",
                f"({self.name()}, {self.name()})",
                f"(lambda p={self.name()}: ({self.name()}, p))()",
                f"[{self.expression(depth - 1)} for {self.name()} in (1, 2) if {self.expression(depth - 1)}]",
                f"({self.name()} := {self.expression(depth - 1)})",
                f"({self.name()} < {self.name()} < {self.call()})",
                f"{{{self.name()}: {self.call()} for {self.name()} in (0, 1)}}",
                f"list({self.name()} for {self.name()} in (2, 3))",
                f"t(*[{self.name()}], k={self.name()})",
                f"f'{{{self.name()}}}:{{{self.name()}!r}}'",
            )
        )
        return self.name() if self.anonymous and ("lambda" in found or found.startswith("f'")) else found

    def block(self, depth: int, loop: bool, size: int = 3) -> list[Node]:
        return [self.statement(depth, loop) for _ in range(self.random.randint(1, size))]

    def statement(self, depth: int, loop: bool) -> Node:
        random = self.random
        kinds = ["assign"] * 4 + ["call"] * 4 + ["aug", "del", "return", "raise", "unpack", "assert", "swap", "store"]
        if self.generator:
            kinds += ["yield"] * 3 + ["yieldfrom"]
        if loop:
            kinds += ["break", "continue"] * 2
        if depth:
            kinds += (
                ["if"] * 3 + ["while"] * 2 + ["for"] * 2 + ["try"] * 4 + ["finally"] * 2 + ["with"] * 2 + ["def"] * 2
            )
            kinds += ["match"]
        kind = random.choice(kinds)
        if kind == "def" and self.anonymous:
            kind = "call"
        deeper = depth - 1
        if kind in ("assign", "aug"):
            return Node(kind, [self.name(), self.expression()], [])
        if kind == "call":
            return Node(kind, [self.call()], [])
        if kind in ("return", "yield", "yieldfrom", "assert", "store"):
            return Node(kind, [self.expression()], [])
        if kind == "del":
            return Node(kind, [self.name()], [])
        if kind == "raise":
            return Node(kind, [random.choice(("KeyError", "ValueError", "TypeError", "")), self.expression(1)], [])
        if kind == "unpack":
            return Node(kind, [self.name(), self.name(), self.expression(1), self.name()], [])
        if kind == "swap":
            return Node(kind, [self.name(), self.name()], [])
        if kind in ("break", "continue"):
            return Node(kind, [], [])
        if kind == "if":
            return Node(
                kind,
                [self.expression()],
                [self.block(deeper, loop), self.block(deeper, loop) if random.random() < 0.5 else []],
            )
        if kind == "while":
            return Node(
                kind,
                [self.call()],
                [self.block(deeper, True), self.block(deeper, loop, 1) if random.random() < 0.3 else []],
            )
        if kind == "for":
            return Node(
                kind,
                [self.name(), self.name()],
                [self.block(deeper, True), self.block(deeper, loop, 1) if random.random() < 0.3 else []],
            )
        if kind == "try":
            handlers = random.randint(1, 2)
            names = [random.choice(ERRORS) for _ in range(handlers)]
            bound = [self.name() if random.random() < 0.4 and not self.anonymous else "" for _ in range(handlers)]
            blocks = [self.block(deeper, loop), *(self.block(deeper, loop, 2) for _ in range(handlers))]
            blocks.append(self.block(deeper, loop, 1) if random.random() < 0.3 else [])
            blocks.append(self.block(deeper, loop, 1) if random.random() < 0.25 else [])
            return Node(kind, [names, bound], blocks)
        if kind == "finally":
            return Node(kind, [], [self.block(deeper, loop), self.block(deeper, loop, 2)])
        if kind == "with":
            return Node(kind, [self.call(), self.name() if random.random() < 0.5 else ""], [self.block(deeper, loop)])
        if kind == "match":
            return Node(
                kind, [self.expression(1), self.name(), self.name()], [self.block(deeper, loop, 2) for _ in range(4)]
            )
        return Node(
            "def", [self.name(), self.name(), random.choice(("", "nonlocal"))], [self.block(min(deeper, 1), False, 2)]
        )

    def function(self) -> list[Node]:
        return self.block(3, False, 4) + [Node("return", [self.expression()], [])]


def text_of(tree: list[Node], depth: int = 1) -> str:
    """The statements as source."""
    return "".join(_lines(node, "    " * depth, depth) for node in tree) or "    " * depth + "pass\n"


def _lines(node: Node, pad: str, depth: int) -> str:
    kind, words = node.kind, node.words

    def inner(at: int) -> str:
        return text_of(node.blocks[at], depth + 1)

    if kind == "assign":
        return f"{pad}{words[0]} = {words[1]}\n"
    if kind == "aug":
        return f"{pad}{words[0]} += {words[1]}\n"
    if kind == "call":
        return f"{pad}{words[0]}\n"
    if kind == "store":
        return f"{pad}t.slot = {words[0]}\n"
    if kind in ("return", "assert"):
        return f"{pad}{kind} {words[0]}\n"
    if kind == "yield":
        return f"{pad}x = yield {words[0]}\n"
    if kind == "yieldfrom":
        return f"{pad}y = yield from [{words[0]}, 5]\n"
    if kind == "del":
        return f"{pad}del {words[0]}\n"
    if kind == "raise":
        return f"{pad}raise {words[0]}({words[1]})\n" if words[0] else f"{pad}raise\n"
    if kind == "unpack":
        return f"{pad}{words[0]}, *{words[1]} = ({words[2]}, {words[3]})\n"
    if kind == "swap":
        return f"{pad}{words[0]}, {words[1]} = {words[1]}, {words[0]}\n"
    if kind in ("break", "continue"):
        return f"{pad}{kind}\n"
    if kind == "if":
        return f"{pad}if {words[0]}:\n{inner(0)}" + (f"{pad}else:\n{inner(1)}" if node.blocks[1] else "")
    if kind == "while":
        return f"{pad}while {words[0]}:\n{inner(0)}" + (f"{pad}else:\n{inner(1)}" if node.blocks[1] else "")
    if kind == "for":
        return f"{pad}for {words[0]} in (1, {words[1]}):\n{inner(0)}" + (
            f"{pad}else:\n{inner(1)}" if node.blocks[1] else ""
        )
    if kind == "try":
        errors, bound = words
        text = f"{pad}try:\n{inner(0)}"
        for at, error in enumerate(errors):
            text += f"{pad}except {error}{' as ' + bound[at] if bound[at] else ''}:\n{inner(1 + at)}"
        if node.blocks[-2]:
            text += f"{pad}else:\n{inner(len(node.blocks) - 2)}"
        return text + (f"{pad}finally:\n{inner(len(node.blocks) - 1)}" if node.blocks[-1] else "")
    if kind == "finally":
        return f"{pad}try:\n{inner(0)}{pad}finally:\n{inner(1)}"
    if kind == "with":
        return f"{pad}with t.manage({words[0]}){' as ' + words[1] if words[1] else ''}:\n{inner(0)}"
    if kind == "match":
        return (
            f"{pad}match {words[0]}:\n"
            f"{pad}    case [{words[1]}, {words[2]}] if {words[1]}:\n{text_of(node.blocks[0], depth + 2)}"
            f"{pad}    case [1, *{words[2]}] | [2, *{words[2]}]:\n{text_of(node.blocks[1], depth + 2)}"
            f"{pad}    case int({words[1]}) | {words[1]} if t(90):\n{text_of(node.blocks[2], depth + 2)}"
            f"{pad}    case {words[2]}:\n{text_of(node.blocks[3], depth + 2)}"
        )
    name, parameter, scope = words
    stated = f"{pad}    nonlocal z\n" if scope and parameter != "z" else ""
    return f"{pad}def {name}({parameter}={parameter}):\n{stated}{inner(0)}{pad}{name} = {name}()\n"


def source_of(tree: list[Node]) -> str:
    """A module that defines f. Every variable is stored somewhere, so that each is a local."""
    return "def f(t, a, b):\n    x, z = b, 3\n    if a:\n        y = t(0)\n" + text_of(tree)


# edits


def edited(tree: list[Node], random: Random) -> list[Node]:
    """A copy with one small edit."""
    new = copy.deepcopy(tree)
    blocks = list(_blocks(new))
    for _ in range(10):
        block = random.choice(blocks)
        if not block:
            continue
        at = random.randrange(len(block))
        if random.choice(_EDITS)(block, at, random, new):
            break
    return new


def _blocks(block: list[Node]) -> Any:
    yield block
    for node in block:
        for below in node.blocks:
            yield from _blocks(below)


def _exchange(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    if at + 1 >= len(block):
        return False
    block[at], block[at + 1] = block[at + 1], block[at]
    return True


def _remove(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    if len(block) < 2:
        return False
    del block[at]
    return True


def _move_in(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    """A statement goes into a block beside it."""
    for beside, front in ((at + 1, True), (at - 1, False)):
        if 0 <= beside < len(block) and block[beside].blocks:
            target = random.choice([below for below in block[beside].blocks if below] or [[]])
            if target:
                node = block[at]
                target.insert(0 if front else len(target), node)
                del block[at]
                return True
    return False


def _move_out(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    """The first or last statement of a block goes before or after what the block belongs to."""
    node = block[at]
    targets = [below for below in node.blocks if len(below) > 1]
    if not targets:
        return False
    target = random.choice(targets)
    if random.random() < 0.5:
        block.insert(at, target.pop(0))
    else:
        block.insert(at + 1, target.pop())
    return True


def _unwrap(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    """What a try, with or loop holds stands alone."""
    node = block[at]
    if not node.blocks or not node.blocks[0]:
        return False
    block[at : at + 1] = node.blocks[0]
    return True


def _word(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    node = block[at]
    places = [place for place, word in enumerate(node.words) if isinstance(word, str) and word]
    if not places:
        return False
    place = random.choice(places)
    word = node.words[place]
    symbols = [symbol for symbol in (*NAMES, *OPERATORS, "0", "1", "2", "3") if _spaced(symbol) in _padded(word)]
    if not symbols:
        return False
    old = random.choice(symbols)
    group = NAMES if old in NAMES else OPERATORS if old in OPERATORS else ("0", "1", "2", "3")
    new = random.choice([symbol for symbol in group if symbol != old])
    node.words[place] = _padded(word).replace(_spaced(old), _spaced(new), 1).replace("\0", "").strip()
    return True


def _padded(word: str) -> str:
    out = ""
    for at, char in enumerate(word):
        before = word[at - 1] if at else " "
        joint = (char.isalnum() or char == "_") != (before.isalnum() or before == "_")
        out += "\0" + char if joint or not at else char
    return out + "\0"


def _spaced(symbol: str) -> str:
    return f"\0{symbol}\0" if symbol[0].isalnum() else symbol


def _leave(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    node = block[at]
    if node.kind == "break":
        node.kind = "continue"
    elif node.kind == "continue":
        node.kind = "break"
    elif node.kind == "try":
        errors, bound = node.words
        which = random.randrange(len(errors))
        if random.random() < 0.5:
            errors[which] = random.choice(ERRORS)
        elif len(errors) > 1:
            errors.reverse()
        else:
            bound[which] = random.choice(("", *NAMES))
    elif len(node.blocks) > 1 and all(node.blocks[:2]):
        node.blocks[0], node.blocks[1] = node.blocks[1], node.blocks[0]
    else:
        return False
    return True


def _merge_tries(block: list[Node], at: int, random: Random, tree: list[Node]) -> bool:
    """A handler's body and the body it protects change places, or a finally becomes the end of the body."""
    node = block[at]
    if node.kind == "finally":
        block[at : at + 1] = [*node.blocks[0], *node.blocks[1]]
        return True
    if node.kind == "try" and node.blocks[-2]:
        node.blocks[0].extend(node.blocks[-2])
        node.blocks[-2] = []
        return True
    return False


_EDITS: tuple[Callable[[list[Node], int, Random, list[Node]], bool], ...] = (
    _exchange, _remove, _move_in, _move_out, _unwrap, _word, _word, _word, _leave, _merge_tries,
)  # fmt: skip


# behaviour


class _Enough(BaseException):
    """The plan is used up: the function runs too long."""


class _Manager:
    def __init__(self, world: World, value: object) -> None:
        self.world = world
        self.value = value

    def __enter__(self) -> object:
        return self.world("enter", self.value)

    def __exit__(self, kind: type | None, value: object, trace: object) -> bool:
        if kind is _Enough:
            return False
        return bool(self.world("exit", kind and kind.__name__))


class World:
    """What a function talks to: notes every call, answers by plan."""

    def __init__(self, plan: int) -> None:
        self.__dict__["random"] = Random(plan)
        self.__dict__["calm"] = plan % 4
        self.__dict__["notes"] = []

    def __setattr__(self, name: str, value: object) -> None:
        self.notes.append((name, show(value)))

    def manage(self, value: object) -> _Manager:
        return _Manager(self, value)

    def __call__(self, *args: object, **keywords: object) -> object:
        notes, random = self.notes, self.random
        notes.append((tuple(map(show, args)), sorted((key, show(value)) for key, value in keywords.items())))
        if len(notes) > 60:
            raise _Enough
        pick = random.random()
        if pick < 0.07 * self.calm:
            raise random.choice((KeyError, ValueError, TypeError))(len(notes))
        return random.choice((0, 1, 2, None, (1, 2), [2, 3], "s"))


def show(value: object, depth: int = 4) -> str:
    """A value as text that is the same in every run."""
    if isinstance(value, (int, str, float, type(None))):
        return _ADDRESS.sub("", repr(value))
    if isinstance(value, (list, tuple)):
        return type(value).__name__ + "(" + ",".join(show(each, depth - 1) for each in value) + ")" if depth else "..."
    if isinstance(value, BaseException):
        context = f" from {show(value.__context__, depth - 1)}" if value.__context__ is not None and depth else ""
        if isinstance(value, NameError):  # its text tells the name of a local, which does not count
            return f"NameError{context}"
        return f"{type(value).__name__}{show(value.args, depth - 1) if depth else ''}{context}"
    return type(value).__name__


def behaviour(f: Any, plans: range, generator: bool) -> list[tuple[str, str]]:
    """For each plan: the calls f makes, and how it ends."""
    seen = []
    for plan in plans:
        world = World(plan)
        try:
            result = f(world, plan % 3, (plan // 3) % 4)
            end = show(result) if not generator else _drain(result, world)
        except _Enough:
            end = "enough"
        except BaseException as error:
            end = show(error)
        seen.append((repr(world.notes), end))
    return seen


def _drain(made: Any, world: World) -> str:
    given = []
    try:
        given.append(show(next(made)))
        while len(given) < 30:
            pick = world.random.random()
            if pick < 0.15:
                given.append(show(made.throw(KeyError("thrown"))))
            elif pick < 0.2:
                made.close()
                return repr([*given, "closed"])
            else:
                given.append(show(made.send(len(given))))
    except StopIteration as stop:
        given.append("stop " + show(stop.value))
    return repr(given)
