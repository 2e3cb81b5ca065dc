"""Where a text, or bytes of any kind, name what is to be forgotten.

In: files and texts, and what else is known to have a name that only begins or ends like that of a file. Out: whether
something names them. Law: what names one of them is found; of what does not, as little as possible is taken for it. A
text is looked for as it stands. A file is looked for as a whole: `/d/a` is named by `/d/a` and `/d/a/x.csv`, and not by
`/d/abc.csv` or `/mnt/d/a`. In bytes there are no ends of names: the sign behind one may be the length of what comes
next. So what seems to go on there counts, unless it goes on like a name that is known, and for long enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import AnyStr, Final
from urllib.parse import quote

_SHORTEST_CUT: Final = 8  # characters of a beginning that are still told from other texts
_ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-32-le")  # that libraries use
# Before a name: no sign of one, unless that belongs to something that is written for another sign, or was left out.
_BEGINS: Final = r"(?:(?<![\w~+.-])|(?<=\\[nrt])|(?<=%2[Ff])|(?<=%3[Aa])|(?<=\.\.\.))"
_SEPARATOR: Final = r"%(?:0[Aa]|2[027Ff]|3[AaBbFf]|5[Cc])"  # as addresses have it
_GOES_ON: Final = rf"(?!{_SEPARATOR})\.{{0,3}}[\w~+%@$*=-]"
_begin: Final = re.compile(_BEGINS)
_head: Final = re.compile(r"[\w~+.-]+\Z")
_rest: Final = re.compile(rf"(?={_GOES_ON})[\w~+%@$*=.-]+")
_no_text: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_cut: Final = re.compile(r"\.\.\.(?!@)")  # before @ stands in the place of a credential
_LONGEST: Final = 1024  # characters of a part of a path
_ENOUGH: Final = 3  # characters that are hardly anything else than the rest of a known name


class Wanted:
    """What is looked for. others: names of files, or texts with them, that are not looked for and stay.

    enough: characters in which bytes have to go on like one of those.
    """

    def __init__(
        self, files: Sequence[str], texts: Sequence[str], others: Sequence[str] = (), enough: int = _ENOUGH
    ) -> None:
        self.files = tuple(dict.fromkeys(file.rstrip("/") or file for file in files))
        self.texts = tuple(dict.fromkeys(texts))
        self._file_forms = tuple(dict.fromkeys(form for file in self.files for form in _written(file)))
        self._text_forms = tuple(dict.fromkeys(form for text in self.texts for form in _written(text)))
        names = "|".join(map(re.escape, sorted(self._file_forms, key=len, reverse=True)))
        self._any_name = re.compile(names)
        self._name = re.compile(rf"{_BEGINS}(?:{names})(?!{_GOES_ON})")
        self._packed_texts = [packed for form in self._text_forms for packed in _packed(form)]
        self._packed_names = {packed: _Packed(packed) for form in self._file_forms for packed in _packed(form)}
        for other in others:
            self._leave_out(other, enough)

    def __bool__(self) -> bool:
        return bool(self.files or self.texts)

    @property
    def margin(self) -> int:
        """Bytes on both sides of a place that tell whether one of them is named there."""
        sizes = [*map(len, self._packed_texts), *(each.margin for each in self._packed_names.values())]
        return max(sizes, default=0)

    def in_text(self, text: str) -> bool:
        """Whether a text names one of them, or ends with the beginning of one where it was cut off."""
        return self._named(text) or any(self._begins_before(text[: cut.start()]) for cut in _cut.finditer(text))

    def in_content(self, content: bytes) -> bool:
        """Whether the content of a file, or of a part of a recipe, names one of them, be it a text or not."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return self.in_bytes(content)
        return self.in_bytes(content) if _no_text.search(text) else self._named(text)

    def in_bytes(self, content: bytes, begin: int = 0, end: int | None = None) -> bool:
        """Whether bytes name one of them, at a place that begins within these limits."""
        end = len(content) if end is None else end
        if any(True for form in self._packed_texts for _ in _places(content, form, begin, end)):
            return True
        return any(packed.is_in(content, begin, end) for packed in self._packed_names.values())

    def others_in(self, text: str) -> Iterator[str]:
        """Names in a text that only begin or end like that of a file."""
        if not self._may_name(text):
            return
        for match in self._any_name.finditer(text):
            head, rest = _around(text, *match.span())
            if head or rest:
                yield f"{head}{match[0]}{rest}"

    def _may_name(self, text: str) -> bool:
        return any(form in text for form in self._file_forms)

    def _named(self, text: str) -> bool:
        if any(form in text for form in self._text_forms):
            return True
        return self._may_name(text) and self._name.search(text) is not None

    def _begins_before(self, text: str) -> bool:
        words = (*self._file_forms, *self._text_forms)
        return any(text.endswith(word[:size]) for word in words for size in range(_SHORTEST_CUT, len(word)))

    def _leave_out(self, other: str, enough: int) -> None:
        for written in dict.fromkeys(_written(other)):
            for form in self._file_forms:
                for at in _places(written, form, 0, len(written)):
                    end = at + len(form)
                    head, rest = _around(written, at, end)
                    heads = [written[max(0, at - len(head) - 1) : at]] if head else []  # with the sign before it
                    rests = [rest, written[end:]] if rest else []
                    for number, packed in enumerate(_packed(form)):
                        self._packed_names[packed].leave_out(
                            [_packed(each)[number] for each in heads if len(each) >= enough],
                            [_packed(each)[number] for each in rests if len(each) >= enough],
                        )


class _Packed:
    """The bytes of a name, and with what before or behind it they are another name. margin: as that of Wanted."""

    def __init__(self, form: bytes) -> None:
        self._form, self.margin = form, len(form)
        self._heads: dict[int, set[bytes]] = {}  # by length
        self._rests: dict[int, set[bytes]] = {}

    def leave_out(self, heads: Sequence[bytes], rests: Sequence[bytes]) -> None:
        """With one of these it is another name."""
        for head in heads:
            self._heads.setdefault(len(head), set()).add(head)
            self.margin = max(self.margin, len(head))
        for rest in rests:
            self._rests.setdefault(len(rest), set()).add(rest)
            self.margin = max(self.margin, len(self._form) + len(rest))

    def is_in(self, content: bytes, begin: int, end: int) -> bool:
        """Whether it is there, and no other name, at a place that begins within these limits."""
        return any(not self._is_other(content, at) for at in _places(content, self._form, begin, end))

    def _is_other(self, content: bytes, at: int) -> bool:
        behind = at + len(self._form)
        if any(content[behind : behind + size] in rests for size, rests in self._rests.items()):
            return True
        return any(content[at - size : at] in heads for size, heads in self._heads.items() if size <= at)


def _around(text: str, begin: int, end: int) -> tuple[str, str]:
    """With what a longer name begins, and goes on, that has this one in it; empty if it does not."""
    head = None if _begin.match(text, begin) else _head.search(text, max(0, begin - _LONGEST), begin)
    rest = _rest.match(text, end, end + _LONGEST)
    return head[0] if head else "", rest[0] if rest else ""


def _places(content: AnyStr, form: AnyStr, begin: int, end: int) -> Iterator[int]:
    """Where something stands, at places that begin within these limits."""
    at = content.find(form, begin)
    while 0 <= at < end:
        yield at
        at = content.find(form, at + 1)


def _packed(form: str) -> list[bytes]:
    return [form.encode(encoding, "surrogatepass") for encoding in _ENCODINGS]


def _written(text: str) -> list[str]:
    """A text in each way in which it is written into texts, and these into others, as in the JSON of a recipe."""
    once = [written(text) for written in _WAYS]
    twice = [written(form) for form in once for written in _WAYS]
    return list(dict.fromkeys([text, *once, *twice, quote(text), quote(text, safe="")]))


_WAYS: Final[tuple[Callable[[str], str], ...]] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: repr(f'"{text}')[2:-1],  # beside what makes Python choose the other quotes
)
