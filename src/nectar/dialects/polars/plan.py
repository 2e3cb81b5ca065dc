"""A lazy frame taken apart into its steps, and put together again with some of them replaced.

In: a LazyFrame. Out: a Plan: steps in an order in which inputs come first. Polars writes a plan as a list of slots that
refer to each other by number; some steps (concat) hold their inputs in place. Slots that are not changed are written
back byte for byte.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import polars as pl

from nectar.errors import UserError
from nectar.keys.values.polars_functions import Functions, given_in, mapped, without_pickle
from nectar.keys.values.polars_plans import REFUSED_PLANS, Callback

HEADER: Final = 79  # bytes before the slots: a word, the version, the hash of the format
_INPUTS: Final = ("input", "input_left", "input_right", "idxs")
_SEVERAL: Final = "inputs"
_AS_WRITTEN: Final = pl.QueryOptFlags.none()._pyoptflags
_FRAMES: Final = {"DataFrameScan": "df", "Pivot": "on_columns"}  # where steps refer to a frame in memory
# A reference to a slot, as MessagePack has it: {"idx": number, "version": number}.
_REFERENCE: Final = re.compile(rb"\x82\xa3idx(?:[\x00-\x7f]|\xcc.|\xcd..|\xce....)\xa7version", re.DOTALL)
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05]")  # how pickles begin, also where Polars writes them number by number


class _Slot(msgspec.Struct):
    value: msgspec.Raw
    version: int


class _Reference(msgspec.Struct):
    idx: int
    version: int


class _Arena(msgspec.Struct):
    root: _Reference
    dataframes: list[msgspec.Raw]
    dsl_plans: list[_Slot]


# Made now: two threads that decode a type for the first time may crash msgspec.
_decode: Final = msgspec.msgpack.Decoder(_Arena).decode


class Step(msgspec.Struct, frozen=True, eq=False):
    """One step. kind: as Polars calls it. body: its content, inputs left out. inputs: numbers of other steps.

    functions: keeps the Python functions of the plan, which the body only has tokens of.
    """

    kind: str
    body: dict[str, Any]
    inputs: tuple[int, ...]
    functions: Functions = msgspec.field(default_factory=Functions)


class Plan:
    """The steps of a lazy frame; the last is the root.

    functions: the Python functions in it. Frames that are made from the plan can be run as long as they are there.
    """

    def __init__(self, data: bytes, functions: Functions | None = None) -> None:
        self.functions = functions or Functions()
        self.header = data[:HEADER]
        self._arena = _decode(data[HEADER:])
        self.steps: list[Step] = []
        self._bodies: list[Any] = []  # of the whole step, as Polars has it
        self._number_of_slot: dict[int, int] = {}
        self._schemas: dict[int, pl.Schema] = {}
        self._written: dict[int, Any] = {}
        self._callbacks: dict[int, dict[bytes, Callback]] = {}
        self._stand_ins: dict[int, pl.LazyFrame] = {}  # for steps whose schemas are known
        self._sources: dict[int, tuple[pl.LazyFrame, msgspec.Raw]] = {}  # by identity, for as long as they are held
        self._collect(self._arena.root.idx)

    @classmethod
    def of(cls, frame: pl.LazyFrame) -> Plan:
        """The plan of a lazy frame.

        Of a clone: writing it down keeps others who want to change the frame waiting, who may have what it needs.
        """
        functions = Functions()
        return cls(functions.serialised(frame.clone()._ldf.serialize_binary), functions)

    @property
    def root(self) -> int:
        """The number of the root."""
        return len(self.steps) - 1

    @property
    def frames(self) -> list[bytes]:
        """The data frames in the plan, as Polars serialises them; the first is a placeholder."""
        return [bytes(raw) for raw in self._arena.dataframes]

    # reading

    def _collect(self, root: int) -> None:
        """Reads all slots below the root, without recursion: plans may be thousands of steps deep."""
        pending = [root]
        while pending:
            slot = pending[-1]
            if slot in self._number_of_slot:
                pending.pop()
                continue
            raw = self._arena.dsl_plans[slot].value
            body = msgspec.msgpack.decode(raw)
            if _PICKLE.search(raw):
                body = self.functions.adopted(body, ())
            references = _references(body)
            _expect_no_others(body, raw, references)
            missing = [each for each in references if each not in self._number_of_slot]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            self._number_of_slot[slot] = self._add(body)

    def _add(self, body: Any) -> int:
        """Adds a step whose references have numbers already, and the steps it holds in place; its number."""
        kind, content = _unwrapped(body)
        inputs = [self._number_of(each) for each in _inputs_of(content)]
        rest = {name: value for name, value in content.items() if name not in _INPUTS and name != _SEVERAL}
        if kind == "Pivot":  # what the step does is in the frame; its number is not even the same in the next plan
            rest["on_columns"] = bytes(self._arena.dataframes[content["on_columns"]["idx"]])
        self.steps.append(Step(kind, rest, tuple(inputs), self.functions))
        self._bodies.append(body)
        return len(self.steps) - 1

    def _number_of(self, source: Any) -> int:
        return self._number_of_slot[source["idx"]] if _is_reference(source) else self._add(source)

    def callbacks_of(self, step: int) -> Mapping[bytes, Callback]:
        """The Python functions of a step, by their tokens."""
        known = self._callbacks.get(step)
        if known is None:
            known = {}
            mapped(self.steps[step].body, (self.steps[step].kind,), partial(_note, known))
            self._callbacks[step] = known  # whole, for whoever asks in another thread
        return known

    # writing

    def frame(
        self, number: int, replaced: Mapping[int, pl.LazyFrame] = {}, once: Mapping[int, bytes] = {}
    ) -> pl.LazyFrame:
        """The lazy frame that ends with a step, some steps replaced by others.

        once: steps that are the same have the same 16 bytes here, and are computed once.
        """
        if number in replaced:
            return replaced[number]
        return pl.LazyFrame.deserialize(io.BytesIO(self.written(number, replaced, once)))

    def written(
        self,
        number: int,
        replaced: Mapping[int, pl.LazyFrame] = {},
        once: Mapping[int, bytes] = {},
        changed: Callable[[Any], Any] | None = None,
    ) -> bytes:
        """The plan that ends with a step, as Polars serialises it; sources in it may be replaced by others.

        changed: what becomes of each step that holds Python functions.
        """
        return _Writer(self, replaced, once, changed).written(number)

    def schema(self, number: int) -> pl.Schema:
        """Columns and types of what a step gives, as they were when first asked for."""
        if number not in self._schemas:
            inputs = self.steps[number].inputs
            known = inputs and all(source in self._schemas for source in inputs)
            below = {source: self.stand_in(source) for source in inputs} if known else self._stand_ins
            self._schemas[number] = self.frame(number, below).collect_schema()
        return self._schemas[number]

    def stand_in(self, number: int) -> pl.LazyFrame:
        """A source that has the columns of a step, and is never read."""
        if number not in self._stand_ins:
            self._stand_ins[number] = _nothing_but(self.schema(number))
        return self._stand_ins[number]

    def tell_schema(self, number: int, schema: Mapping[str, pl.DataType]) -> None:
        """What a scan gives is known, so that its files need not be opened for the schemas of steps above it."""
        if number not in self._schemas:
            self._schemas[number] = known = pl.Schema(schema)
            self._stand_ins[number] = _nothing_but(known)

    def forget_schemas(self) -> None:
        """Schemas are found out anew: files were looked at again."""
        self._schemas.clear()
        self._written.clear()
        self._stand_ins.clear()

    def written_schema(self, number: int) -> Any:
        """The same as Polars writes it into plans."""
        if number not in self._written:
            (step,) = Plan.of(self.stand_in(number)).steps
            self._written[number] = step.body["options"]["schema_fn"]["Right"]
        return self._written[number]

    def with_step(self, kind: str, body: dict[str, Any]) -> pl.LazyFrame:
        """The lazy frame that is nothing but one source, described as Polars does it."""
        value = msgspec.Raw(msgspec.msgpack.encode({kind: body}))
        arena = _Arena(_Reference(1, 1), self._arena.dataframes[:1], [self._arena.dsl_plans[0], _Slot(value, 1)])
        return pl.LazyFrame.deserialize(io.BytesIO(self.header + msgspec.msgpack.encode(arena)))

    def slot_of(self, source: pl.LazyFrame) -> msgspec.Raw:
        """The only slot of a lazy frame that is nothing but a source; written once, however often it is used."""
        known = self._sources.get(id(source))
        if known is None:
            self._sources[id(source)] = known = (source, _single_slot(source, self.functions))
        return known[1]

    def slots(self) -> dict[int, int]:
        """From the number of a step to the slot it stands in."""
        return {number: slot for slot, number in self._number_of_slot.items()}


def _nothing_but(schema: pl.Schema) -> pl.LazyFrame:
    return pl.LazyFrame._scan_python_function(schema=schema, scan_fn=_never, is_pure=True)


def _never(*_: Any) -> Any:
    raise AssertionError("a source that is nothing but a schema is not to be read")


def traverser_of(frame: pl.LazyFrame) -> Any:
    """The resolved plan of a lazy frame, not optimised, to be gone through.

    The schema is asked for first: it lets other threads go on while files are opened. Going through a frame that is not
    resolved would stop them all, and wait for ever if one of them runs a Python function in a pool that is needed.
    """
    frame.collect_schema()
    return frame._ldf.with_optimizations(_AS_WRITTEN).visit()


class _Writer:
    """Writes one plan: slots of its own, in the order of steps."""

    def __init__(
        self,
        plan: Plan,
        replaced: Mapping[int, pl.LazyFrame],
        once: Mapping[int, bytes],
        changed: Callable[[Any], Any] | None,
    ) -> None:
        self._plan = plan
        self._replaced = replaced
        self._once = once
        self._changed = changed
        self._slots: list[_Slot] = [plan._arena.dsl_plans[0]]  # the first is a placeholder, as Polars has it
        self._at: dict[int, int] = {}
        self._kept = plan.slots()

    def written(self, root: int) -> bytes:
        """The plan that ends with a step."""
        for number in self._needed(root):
            self._at[number] = self._add(self._body(number))
            if self._is_once(number):
                self._at[number] = self._add(self._cached(self._at[number], number))
        arena = _Arena(_Reference(self._at[root], 1), self._plan._arena.dataframes, self._slots)
        return self._plan.header + msgspec.msgpack.encode(arena)

    def _needed(self, root: int) -> list[int]:
        """Steps to be written, inputs first."""
        seen = {root}
        pending = [root]
        while pending:
            number = pending.pop()
            for source in () if number in self._replaced else self._plan.steps[number].inputs:
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return sorted(seen)

    def _add(self, body: Any) -> int:
        raw = msgspec.msgpack.encode(body)
        if self._changed is not None and _PICKLE.search(raw):
            raw = msgspec.msgpack.encode(self._changed(msgspec.msgpack.decode(raw)))
        self._slots.append(_Slot(msgspec.Raw(raw), 1))
        return len(self._slots) - 1

    def _is_once(self, number: int) -> bool:
        return number in self._once and number not in self._replaced

    def _cached(self, slot: int, number: int) -> Any:
        return {"Cache": {"input": {"idx": slot, "version": 1}, "id": self._once[number]}}

    def _in_place(self, number: int) -> Any:
        """A step where Polars wants it in place; one that is computed once stands there as what it is known by."""
        if self._is_once(number):  # its slot is followed by the one that says so
            return self._cached(self._at[number] - 1, number)
        return self._body(number)

    def _body(self, number: int) -> Any:
        """A step as Polars has it: its inputs as references, but steps in place where Polars wants them so."""
        frame = self._replaced.get(number)
        if frame is not None:
            return self._plan.slot_of(frame)
        step = self._plan.steps[number]
        sources = iter(step.inputs)
        content: dict[str, Any] = {}
        for name, value in _unwrapped(self._plan._bodies[number])[1].items():
            if name in _INPUTS and _is_reference(value):
                content[name] = {"idx": self._at[next(sources)], "version": 1}
            elif name in _INPUTS and isinstance(value, list):
                content[name] = [{"idx": self._at[next(sources)], "version": 1} for _ in value]
            elif name in _INPUTS:
                content[name] = self._in_place(next(sources))
            elif name == _SEVERAL:
                content[name] = [self._in_place(next(sources)) for _ in value]
            else:
                content[name] = value
        return {step.kind: content}


def _single_slot(frame: pl.LazyFrame, functions: Functions) -> msgspec.Raw:
    """The only slot of a lazy frame that is nothing but a source."""
    arena = _decode(functions.serialised(frame._ldf.serialize_binary)[HEADER:])
    return arena.dsl_plans[arena.root.idx].value


def _unwrapped(body: Any) -> tuple[str, dict[str, Any]]:
    """Kind and content of a step."""
    ((kind, content),) = body.items() if isinstance(body, dict) else ((str(body), {}),)
    return kind, content if isinstance(content, dict) else {"": content}


def _inputs_of(content: dict[str, Any]) -> list[Any]:
    """References and steps in place, in the order of the content."""
    found = []
    for name, value in content.items():
        if name in _INPUTS and not isinstance(value, list):
            found.append(value)
        elif name in _INPUTS or name == _SEVERAL:
            found.extend(value)
    return found


def _references(body: Any) -> list[int]:
    """Slots that a step refers to, those of the steps it holds in place included."""
    found: list[int] = []
    pending = [body]
    while pending:
        current = pending.pop()
        if _is_reference(current):
            found.append(current["idx"])
            continue
        pending.extend(_inputs_of(_unwrapped(current)[1]))
    return found


def _expect_no_others(body: Any, raw: msgspec.Raw, found: list[int]) -> None:
    """Refuses a step that refers to slots where nobody would look for them: they would be left out of its key."""
    frames = _frames_in(body)
    if len(_REFERENCE.findall(raw)) != len(found) + frames:
        kind, _ = _unwrapped(body)
        reason = REFUSED_PLANS.get(kind, f"it has a step of the kind {kind} that refers to others in an unknown way")
        raise UserError(reason)


def _frames_in(body: Any) -> int:
    """How many frames in memory a step refers to, the steps it holds in place included."""
    count = 0
    pending = [body]
    while pending:
        current = pending.pop()
        if not _is_reference(current):
            kind, content = _unwrapped(current)
            count += kind in _FRAMES and _is_reference(content.get(_FRAMES[kind]))
            pending.extend(_inputs_of(content))
    return count


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"idx", "version"}


def _note(found: dict[bytes, Callback], value: bytes) -> bytes:
    callback = given_in(value)
    if callback is not None:
        found[without_pickle(value)[1]] = callback
    return value
