"""What may be a credential: known by what it is called, or by what it looks like; and texts and logs without it.

In: names of parameters, keys, variables, headers and options; texts of all kinds. Out: whether something is secret, and
the text with `...` in its place. Law: whatever is written down for people passes through here (`catalog/index` sees to
it), and so does all that Nectar logs; what was left out once stays left out: the functions give the same when they are
applied again.

A value under an innocent name that looks like nothing known cannot be told from any other.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Final

from nectar.trust.looks import BEFORE_PASSWORDS, PREFIXED, SIGNS

HIDDEN: Final = "..."
_WINDOW: Final = 400  # bytes on both sides of a sign that are looked at, in what is long
_LONG: Final = 1 << 14
_PRINTED: Final = rb"[\t\n\r -~]{8,}"  # what may be text in bytes of any kind

# Words of names, in small letters. A name is cut into words at capitals, digits and signs: `author` is not `auth`.
_WORDS: Final = frozenset({
    "password", "passwords", "passwd", "pwd", "passphrase", "passcode", "pass", "pw", "secret", "secrets",
    "token", "credential", "credentials", "creds", "auth", "authorization", "authentication", "cookie",
    "cookies", "dsn", "sig", "signature", "sas", "jwt", "bearer", "apikey", "accesskey", "privatekey",
    "secretkey",
})  # fmt: skip
# Several words, or parts of longer ones, written together.
_TOGETHER: Final = (
    "passw", "secret", "credential", "apikey", "accesskey", "accountkey", "privatekey", "sharedkey",
    "storagekey", "signingkey", "encryptionkey", "sessionkey", "masterkey", "clientkey", "connectionstring",
    "connstr", "connectionuri", "accesstoken", "refreshtoken", "authtoken", "sessionid", "keypairid",
    "accesskeyid", "accessid", "securitytoken",
)  # fmt: skip
# A text in which none of these is, in small letters, holds nothing that is looked for below.
_SIGNS: Final = (
    "pass", "pwd", "pw", "secret", "token", "cred", "auth", "cookie", "dsn", "sig", "sas", "jwt", "bearer",
    "key", "identified", "connection", "connstr", "conn_str", "session", "access", "://", "akia", "asia",
    "aroa", "aida", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xox", "xapp-", "eyj", "sk-", "sk_",
    "rk_", "aiza", "ya29.", "npm_", "pypi-", "dapi", "hf_", "sg.", "hooks.slack", "private", "github_pat_",
    "basic", *SIGNS,
)  # fmt: skip
_FEWEST: Final = tuple(sign for sign in _SIGNS if not any(each in sign for each in _SIGNS if each != sign))
_SIGNS_IN_BYTES: Final = tuple(sign.encode() for sign in _FEWEST)
_LOOKS: Final = (
    r"-----BEGIN [A-Z ]{0,64}PRIVATE KEY.*?(?:-----END [A-Z ]{0,64}-----|\Z)",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{12,}",
    r"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{16,}",
    r"(?<![A-Za-z0-9])glpat-[\w-]{16,}",
    r"(?<![A-Za-z0-9])(?:xox[a-z]-|xapp-)[\w-]{8,}",
    # Without a dot a long one is enough: not every beginning of one may be followed to its end.
    r"(?<![A-Za-z0-9])eyJ(?:[\w-]{8,1024}+\.[\w-]{4,}|[\w-]{1025,}(?:\.[\w-]*)?)(?:\.[\w-]*)?",
    r"(?<![A-Za-z0-9])(?:sk-|sk_live_|sk_test_|rk_live_)[\w-]{16,}",
    r"(?<![A-Za-z0-9])AIza[\w-]{30,}",
    r"(?<![A-Za-z0-9])ya29\.[\w-]{16,}",
    r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{30,}",
    r"(?<![A-Za-z0-9])pypi-[\w-]{30,}",
    r"(?<![A-Za-z0-9])dapi[0-9a-f]{24,}",
    r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{24,}",
    r"(?<![A-Za-z0-9])SG\.[\w-]{16,}\.[\w-]{16,}",
    r"(?<=hooks\.slack\.com/)[\w/-]+",
    *PREFIXED,
)
# What names in addresses hold besides: there `key` alone is one, and what is left out by mistake costs little.
_IN_ADDRESSES: Final = r"token|auth|session|sig(nature)?$|^key$"
_OF_CONTAINERS: Final = ("abfs://", "abfss://", "wasb://", "wasbs://", "az://")  # before the host is the name of one
_QUOTES: Final = (
    r'''"{3}.*?"{3}''', r"""'{3}.*?'{3}""",
    r'''\\+"[^"\\\n]*\\+"''', r"""\\+'[^'\\\n]*\\+'""",  # in a text within a text
    r'''"(?:[^"\\\n]|\\.)*(?:"|\Z)''', r"""'(?:[^'\\\n]|\\.)*(?:'|\Z)""",
)  # fmt: skip
_NO_VALUES: Final = ("None", "True", "False", "null", "true", "false")
_QUOTED: Final = "|".join(_QUOTES)


def is_secret_name(name: str) -> bool:
    """Whether what is called so may be a credential."""
    return _is_secret_name(name[-200:])


def is_secret_parameter(name: str) -> bool:
    """Whether a parameter of an address, behind its `?`, may be a credential by what it is called."""
    return is_secret_name(name) or re.search(_IN_ADDRESSES, name.lower()) is not None


@lru_cache(4096)
def _is_secret_name(name: str) -> bool:
    low = name.lower()
    if not any(sign in low for sign in _SIGNS):
        return False
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    if not _WORDS.isdisjoint(words) or words == ["tokens"]:  # `max_tokens` is a number of words
        return True
    joined = "".join(words)
    return any(each in joined for each in _TOGETHER)


def redacted(text: str) -> str:
    """The text, with `...` in the place of what may be a credential."""
    if not may_hold_secret(text):
        return text
    text = _looks().sub(HIDDEN, text)
    text = _without_users(text)
    text = _header().sub(rf"\1{HIDDEN}", text)
    text = _scheme_and_token().sub(rf"\1{HIDDEN}", text)
    text = _in_command().sub(rf"\1{HIDDEN}", text)
    text = _in_pair().sub(rf"\1{HIDDEN}\2", text)
    return _without_values(_told(), _without_values(_called(), text))


def may_hold_secret(text: str) -> bool:
    """Whether a text has to be searched: false for most, at the cost of microseconds."""
    low = text.lower()
    for sign in _FEWEST:  # noqa: SIM110 - any() takes twice as long, and all that is written down comes by here
        if sign in low:
            return True
    return False


def looks_secret(content: str | bytes) -> bool:
    """Whether anything in a text, or in bytes of any kind, looks like a credential: a key, an address with a password.

    Not every name with a value behind it counts that `redacted` leaves out: a message may speak of passwords.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
        return _any_looks_secret(content, _signs_in(content))
    signs = _signs_in(content)
    # Piece by piece: between them, and in numbers, any short name has some value behind it sooner or later.
    return bool(signs) and any(_any_looks_secret(piece, signs) for piece in re.findall(_PRINTED, content))


def _signs_in(content: bytes) -> list[bytes]:
    """The signs that are in it; mostly few are."""
    low = content.lower()
    return [sign for sign in _SIGNS_IN_BYTES if sign in low]


def _any_looks_secret(content: bytes, signs: list[bytes]) -> bool:
    low = content.lower()
    if not any(sign in low for sign in signs):
        return False
    if len(content) <= _LONG:
        return _looks_secret(content.decode("latin-1"))
    return any(_looks_secret(piece.decode("latin-1")) for piece in _near_signs(content, signs))


def _looks_secret(text: str) -> bool:
    if _looks().search(text) or any(not text.startswith(HIDDEN, begin) for begin, _ in _users(text)):
        return True
    if any(each().search(text) for each in (_scheme_and_token, _in_command, _in_pair)):
        return True
    return not all(map(_is_harmless, _all(_called(), text)))


def _is_harmless(match: re.Match[str]) -> bool:
    """Whether what stands behind a name is a sentence, as in a message, or will be filled in later."""
    is_sentence = ":" in match[2] and match[3].isalpha()
    return is_sentence or bool(re.fullmatch(r"%s|%r|%\(\w+\)s|\?|\$|\$\w+|:\w+", match[3]))


def _near_signs(content: bytes, signs: list[bytes]) -> Iterator[bytes]:
    """The neighbourhoods of signs in what is too long to be searched for patterns."""
    low, reached = content.lower(), 0
    places = sorted(place for sign in signs for place in _places(low, sign))
    for place in places:
        if place >= reached:
            reached = place + _WINDOW // 2
            yield content[max(0, place - _WINDOW) : place + _WINDOW]


def _places(content: bytes, sign: bytes) -> Iterator[int]:
    place = content.find(sign)
    while place >= 0:
        yield place
        place = content.find(sign, place + 1)


# users in addresses


def _without_users(text: str) -> str:
    pieces, after = [], 0
    for begin, end in _users(text):
        pieces += [text[after:begin], HIDDEN]
        after = end
    return "".join([*pieces, text[after:]])


def _users(text: str) -> Iterator[tuple[int, int]]:
    """Where users, or users and passwords, stand in addresses: between `://` and the `@` before the host.

    A password may hold signs that should have been escaped: it ends with the last `@` of the word. One pattern for all
    of that would try each `://` with each `:` and each `@` behind it, and others wait as long as it does.
    """
    for word in _word().finditer(text):
        at, last = word.start(), text.rfind("@", *word.span())
        while last >= 0 and (sign := text.find("://", at, last)) >= 0:
            at = begin = sign + 3
            user = _user()(text, begin)
            assert user is not None  # it may be empty
            if user[1]:
                yield begin, last
                break
            if text[user.end()] == "@" and not text.endswith(_OF_CONTAINERS, 0, begin):
                yield begin, user.end()
                at = user.end()


# patterns, compiled when the first text comes by that may hold something


@cache
def _looks() -> re.Pattern[str]:
    return re.compile("|".join(_LOOKS), re.DOTALL)


@cache
def _word() -> re.Pattern[str]:
    return re.compile(r"""[^\s"'<>]+""")


@cache
def _user() -> Callable[[str, int], re.Match[str] | None]:
    """A user, and the sign before a password if it is not one before a port."""
    return re.compile(r"""[^/\s"'<>@?#:]*(:(?!\d{1,5}[/?#"'\s]))?""").match


@cache
def _header() -> re.Pattern[str]:
    """A header with everything behind it, up to the end of its line or text."""
    called = r"""(?<![\w])(?:proxy-)?(?:authorization|(?:set-)?cookie)\\{0,32}["']?\s{0,32}:\s{0,32}\\{0,32}["']?"""
    return re.compile(rf"""({called})(?![\s"'\\]{{0,99}}\.\.\.)[^"'\\\n]+""", re.IGNORECASE)


@cache
def _scheme_and_token() -> re.Pattern[str]:
    return re.compile(r"(\b(?:bearer|basic)\s+)(?!\.\.\.)(?=[\w.~+/=-]*[\d=])[\w.~+/=-]{6,}", re.IGNORECASE)


@cache
def _in_command() -> re.Pattern[str]:
    """A password behind an option of a command, or in a file of one."""
    return re.compile(rf"""((?:{"|".join(BEFORE_PASSWORDS)})["']?)(?!\.\.\.)[^\s"']+""")


_WORD_OF_SECRET: Final = r"passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|auth"


@cache
def _in_pair() -> re.Pattern[str]:
    """A name and a value, both in quotes and alone in brackets."""
    between = r"""["']\s{0,32},\s{0,32}[rbfuRBFU]{0,2}["']"""
    name = rf"""(?<![\w)\]])[(\[]\s{{0,32}}["'][\w.-]{{0,60}}(?:{_WORD_OF_SECRET}){between}"""
    return re.compile(rf"""({name})(?!\.\.\.["'])[^"'\n]{{1,4096}}(["']\s{{0,32}}[)\]])""", re.IGNORECASE)


_KIND: Final = r":\s{0,32}[\w.\[\]| ]{1,40}=(?!=)"  # of a variable, in code
_MEANS: Final = rf"""\\{{0,32}}["']?\]?\s{{0,32}}(?:{_KIND}|=>|->|:=|==?|:(?!/)|(?<=\w)>)\s{{0,32}}[rbfuRBFU]{{0,2}}"""
_NAME: Final = r"(?<![\w])([\w.\-]{1,120})"


@cache
def _called() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A name, `=` or `:`, and a value: in a call, a table, an address, a connection string. First the name."""
    block = r"[|>][+-]?[ \t]{0,32}\n(?:[ \t]+[^\n]*(?:\n|\Z))+"  # of YAML
    value = rf"""({_QUOTED}|{block}|\(\s{{1,32}}(?:{_QUOTED})|[^\s"',;&(){{}}\[\]<>|]+)"""
    return re.compile(f"{_NAME}({_MEANS})"), re.compile(f"{_NAME}({_MEANS}){value}", re.DOTALL)


@cache
def _told() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A name and a value in quotes behind it, as in SQL, or one behind an option of a command. First the name."""
    name, option = r"(?<![\w])(?:([\w.]{1,80}|identified\s{1,32}by)", r"(?<![\w])(--[\w.\-]{1,80})"
    between = r"""(\\{0,32}["'`]?\s{1,32})"""
    return (
        re.compile(rf"{name}{between}(?=[\\\"'])|{option}(\s{{1,32}})(?=[^\s\"']))", re.IGNORECASE),
        re.compile(rf"{name}{between}({_QUOTED})|{option}(\s{{1,32}})([^\s\"']\S*))", re.IGNORECASE | re.DOTALL),
    )


def _all(patterns: tuple[re.Pattern[str], re.Pattern[str]], text: str) -> Iterator[re.Match[str]]:
    """Credentials with their names, also in the values of other names: `error: password=...`, `"url=...?token=..."`.

    A value is looked at behind the name of a credential only: a text may be one name after the other, and what is
    behind each its value.
    """
    head, whole = patterns
    match = head.search(text)
    while match is not None:
        name, between = (each for each in match.groups() if each is not None)
        found = whole.match(text, match.start()) if _is_of_secret(name, between) else None
        if found is not None and _is_there(found):
            yield found
            match = head.search(text, found.end())
        else:
            match = head.search(text, match.start() + len(name))


def _without_values(patterns: tuple[re.Pattern[str], re.Pattern[str]], text: str) -> str:
    pieces, after = [], 0
    for match in _all(patterns, text):
        pieces += [text[after : match.start()], _without_value(match)]
        after = match.end()
    return "".join([*pieces, text[after:]])


def _without_value(match: re.Match[str]) -> str:
    name, between, value = (each for each in match.groups() if each is not None)
    before = re.match(r"""\\*["']""", value)
    mark = before[0] if before else ""
    return f"{name}{between}{mark}{HIDDEN}{mark if value.endswith(mark[-1:]) else ''}"


def _is_of_secret(name: str, between: str) -> bool:
    # What seems to be the type of a variable may be words of a sentence: `note: the password=...`.
    return is_secret_name(name) or is_secret_name(between) or name.lower().startswith("identified")


def _is_there(match: re.Match[str]) -> bool:
    """Whether a value that may be a credential is there."""
    *_, value = (each for each in match.groups() if each is not None)
    value = value.strip("\\\"'")
    return bool(value) and not value.startswith(HIDDEN) and value not in _NO_VALUES


# logs


def logger(name: str) -> logging.Logger:
    """The logger of this name, whose messages hold no credentials, whatever they are put together from."""
    found = logging.getLogger(name)
    found.addFilter(_WITHOUT_SECRETS)  # which is there once, however often it is added
    return found


class _WithoutSecrets(logging.Filter):
    """Changes records on their way: a filter of a logger sees them before any handler does."""

    def filter(self, record: logging.LogRecord) -> bool:
        """True, once nothing secret is in the record."""
        record.msg, record.args = redacted(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = redacted(logging.Formatter().formatException(record.exc_info))
        return True


_WITHOUT_SECRETS: Final = _WithoutSecrets()
