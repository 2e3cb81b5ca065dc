"""What changed from an earlier query to this one, in words. Pure: in two records, out sentences.

Steps are compared in the order in which they are done. A step that differs is named with what it was and what it is;
for Python functions, down to the helper and the constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from nectar.dialects.polars.history import ProgramRecord, StepRecord

_SHOWN_FILES: Final = 3
_SHOWN_PHRASES: Final = 2


@dataclass(frozen=True, slots=True)
class Change:
    """What changed. at: number of the step in the new query, or of the one that follows what is gone."""

    at: int
    what: str


def changes(old: ProgramRecord, new: ProgramRecord) -> list[Change]:
    """All that makes a query another one than an earlier one; empty if nothing does."""
    if old.polars != new.polars:
        return [Change(0, f"Polars {old.polars} became {new.polars}")]
    found = list(_changed_steps(old.steps, new.steps))
    if not found and not _is_known(new.steps[-1], old.steps):
        found = [Change(len(new.steps) - 1, "its steps are put together in another way")]
    return found


def _is_known(step: StepRecord, steps: Sequence[StepRecord]) -> bool:
    return any(not set(step.keys).isdisjoint(other.keys) for other in steps)


def _changed_steps(old: Sequence[StepRecord], new: Sequence[StepRecord]) -> Iterator[Change]:
    matcher = SequenceMatcher(None, [each.own for each in old], [each.own for each in new], autojunk=False)
    for tag, first, last, begin, end in matcher.get_opcodes():
        if tag == "equal":
            continue
        pairs, gone, added = _paired(old[first:last], new[begin:end])
        for step, at in pairs:
            if not set(step.keys).isdisjoint(new[begin + at].keys):
                continue  # the same content by another name: a file that was copied, or touched
            yield Change(begin + at, f"{new[begin + at].text}: {_difference(step, new[begin + at])}")
        for at in added:
            yield Change(begin + at, f"{_named(new[begin + at])} is new")
        for step in gone:
            yield Change(min(end, len(new) - 1), f"{_named(step)} is gone")


def _paired(
    old: Sequence[StepRecord], new: Sequence[StepRecord]
) -> tuple[list[tuple[StepRecord, int]], list[StepRecord], list[int]]:
    """Steps of the same kind, in order; then what only one side has."""
    waiting = list(old)
    pairs, added = [], []
    for at, step in enumerate(new):
        match = next((each for each in waiting if _kind(each) == _kind(step)), None)
        if match is None:
            added.append(at)
        else:
            waiting.remove(match)
            pairs.append((match, at))
    return pairs, waiting, added


def _kind(step: StepRecord) -> str:
    return step.text.partition(" ")[0]


def _named(step: StepRecord) -> str:
    return f"{step.text} [{step.detail}]" if step.detail else step.text


def _difference(old: StepRecord, new: StepRecord) -> str:
    told = [*_files(dict(old.files), dict(new.files)), *_functions(old, new), *_phrases(old.phrases, new.phrases)]
    return "; ".join(told) or ("how it is read changed" if new.files else "what it does changed")


def _files(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for names, what in (
        ([name for name in new if name in old and new[name] != old[name]], "changed"),
        ([name for name in new if name not in old], "came"),
        ([name for name in old if name not in new], "went"),
    ):
        if names:
            more = f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""
            yield f"{', '.join(names[:_SHOWN_FILES])}{more} {what}"


def _functions(old: StepRecord, new: StepRecord) -> Iterator[str]:
    if not old.traces or not new.traces:
        return
    from nectar.keys.difference import compare  # takes long to load, and most plans hold no function
    from nectar.keys.trace import Trace

    for before, after in zip(old.traces, new.traces, strict=False):
        found = compare(Trace.from_json(before), Trace.from_json(after))
        if found:
            more = len(found.differences) + found.more - 1
            yield f"{found.differences[0]}" + (f" (and {more} more)" if more else "")


def _phrases(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    gone = [phrase for phrase in old if phrase not in new]
    added = [phrase for phrase in new if phrase not in old]
    if len(gone) == len(added) == 1:
        yield f"was {gone[0]}, is {added[0]}"
        return
    for phrases, word in ((gone, "no longer"), (added, "now")):
        if phrases:
            more = f" and {len(phrases) - _SHOWN_PHRASES} more" if len(phrases) > _SHOWN_PHRASES else ""
            yield f"{word} {', '.join(phrases[:_SHOWN_PHRASES])}{more}"
