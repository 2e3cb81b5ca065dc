"""Paths and URLs as people write them, brought into one form without credentials.

In: a path, a `file://` URL or a URL that fsspec knows. Out: an Address. Law: two addresses that may lead to different
bytes are never shown alike, unless what was left out of the shown form is a credential; and where it cannot be told
whether that credential also chooses the bytes, the address is not `plain`, and its bytes are read each time.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode

from msgspec import Struct

from nectar.errors import InputFailure
from nectar.trust.secrets import is_secret_parameter

# Patterns of URLs are compiled when the first one comes by: most inputs are paths.
_URL: Final = r"[A-Za-z][A-Za-z0-9+.\-]*(://|::)"  # a scheme, or the first link of a chain
_SCHEME: Final = r"([A-Za-z][A-Za-z0-9+.\-]+)://"
_HERE: Final = ("file", "local")
AZURE: Final = frozenset({"abfs", "abfss", "az", "wasb", "wasbs"})

# Parameters by which a signed URL grants access. They say who may read and until when, never what is read.
_SIGNATURES: Final = (r"x-amz-(algorithm|credential|date|expires|security-token|signature|signedheaders)|"
                                r"x-goog-(algorithm|credential|date|expires|signature|signedheaders)")  # fmt: skip
_OLD_SIGNATURES: Final = frozenset(
    {"awsaccesskeyid", "googleaccessid", "signature", "expires", "key-pair-id", "policy"},
)
_AZURE_SIGNATURES: Final = frozenset({
    "sv", "ss", "srt", "sp", "se", "st", "spr", "sip", "sr", "sig", "skoid", "sktid", "skt", "ske", "sks", "skv", "sdd",
})  # fmt: skip


class Address(Struct, frozen=True):
    """Where an input is.

    url: canonical and without credentials, for identities and texts. given: what opens it. local: given is a path.
    plain: nothing was left out of url that could choose other bytes.
    """

    url: str
    given: str
    local: bool
    plain: bool = True


def address_of(source: str | os.PathLike[str]) -> Address:
    """The address that a person meant."""
    text = os.fspath(source)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if ("://" not in text and "::" not in text) or not re.match(_URL, text):
        path = absolute(text)
        return Address(path, path, local=True)
    match = re.match(_SCHEME, text)
    if match is not None and match[1].lower() in _HERE and "::" not in text:
        path = absolute(_path_of(text, text[match.end() :]))
        return Address(path, path, local=True)
    return _remote(text)


def absolute(path: str) -> str:
    """The path from the root. Links stay as they are, except before a `..`, which means the folder they lead to."""
    if not path:
        raise InputFailure("an empty path names no file: give the path of one")
    if ".." in path and ".." in re.split(r"[/\\]", path):
        folder, name = os.path.split(path)
        path = os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)
    path = os.path.abspath(path)
    return path[1:] if path.startswith("//") and os.sep == "/" else path


def _path_of(url: str, rest: str) -> str:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise InputFailure(f"{url} names a host or a relative path, which readers do not agree on: give the path")
    if unquote(path) != path:
        raise InputFailure(f"{url} has escaped characters, which readers do not agree on: give the path")
    return path if re.match(r"[A-Za-z]:", path) else "/" + path


def _remote(text: str) -> Address:
    links = [without_credentials(link) for link in text.split("::")]
    shown = "::".join(url for url, _ in links)
    # What a chain shows may be a copy that one of its links keeps, of which the others' versions say nothing.
    return Address(shown, text, local=False, plain=len(links) == 1 and links[0][1])


def without_credentials(url: str) -> tuple[str, bool]:
    """The URL without what grants access, and whether nothing was left out that could choose other bytes."""
    match = re.match(_SCHEME, url) if "://" in url else None
    if match is None:
        return url, True
    scheme = match[1].lower()
    rest = url[match.end() :]
    end = re.search(r"[/?#]", rest)
    server, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    user, _, host = server.rpartition("@")
    if scheme in AZURE and user and ":" not in user:
        user, host = "", server  # abfs://container@account/...
    if scheme in ("http", "https"):
        host, path = host.lower(), path.partition("#")[0]
    path, question, query = path.partition("?")
    kept, plain = _without_secrets(query)
    # A user name may choose the folder in which a path begins.
    return f"{scheme}://{host}{path}{question if kept else ''}{kept}", plain and not user


def _without_secrets(query: str) -> tuple[str, bool]:
    pairs = parse_qsl(query, keep_blank_values=True)
    names = {name.lower() for name, _ in pairs}
    signatures: set[str] = set()
    if "signature" in names:
        signatures |= _OLD_SIGNATURES
    if {"sig", "sv"} <= names:
        signatures |= _AZURE_SIGNATURES
    left = [
        pair for pair in pairs if pair[0].lower() not in signatures and not re.fullmatch(_SIGNATURES, pair[0].lower())
    ]
    kept = [pair for pair in left if not is_secret_parameter(pair[0])]  # a server may choose by these what it sends
    if len(kept) == len(pairs):
        return query, True
    return urlencode(kept), len(kept) == len(left)
