"""Files behind URLs, through fsspec: what their system says of their version, and their content.

A version id, a generation, a checksum or a strong ETag of an object store changes with the bytes. An ETag of another
server may be made from a time in seconds, so it is trusted, like a time alone, when the last change is long enough ago
(by our clock: the server's may differ). A modification time alone can be set back where the server allows that; nothing
shows it then. What has none of these, or can only be told apart by a credential, is read each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import blake3

from nectar.clock import Clock
from nectar.errors import InputFailure, MissingExtraError, UnreadInputError
from nectar.keys.expansion import joined
from nectar.store.inputs import failures
from nectar.store.inputs.address import AZURE, Address, without_credentials
from nectar.store.inputs.identity import Reading, Seen, Trust, stamp_of

if TYPE_CHECKING:
    from nectar.overhead.allowance import Allowance

_BLOCK: Final = 8 << 20
_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci"})
_HONEST: Final = _OBJECT_STORES | {"memory"}  # of which others write to the files, and not what is said of them

# The names that file systems of fsspec use for the same things.
_CHECKSUMS: Final = ("md5Hash", "md5", "content_md5", "Content-MD5", "Digest", "checksum", "sha256")
_VERSIONS: Final = ("VersionId", "version_id", "versionId", "version", "generation")
_ETAGS: Final = ("ETag", "etag", "e_tag")
_TIMES: Final = ("LastModified", "last_modified", "Last-Modified", "updated", "mtime", "modified", "modify",
                 "modificationTime")  # fmt: skip

# Options that only grant access, or say how the bytes are fetched: they never choose what is read.
_CREDENTIALS: Final = frozenset({
    "key", "secret", "token", "anon", "password", "passwd", "access_key", "secret_key", "session_token", "account_key",
    "sas_token", "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "client_secret", "credential",
    "credentials", "auth", "asynchronous", "loop", "use_listings_cache", "skip_instance_cache", "default_block_size",
    "default_cache_type", "default_fill_cache", "use_ssl", "listings_expiry_time", "max_paths", "max_concurrency",
})  # fmt: skip
_CHOOSING_VARIABLES: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "STORAGE_EMULATOR_HOST",
                              "AZURE_STORAGE_ACCOUNT_NAME")  # fmt: skip


class RemoteInputs:
    """Files behind URLs."""

    def __init__(self, clock: Clock, guard: float, options: Mapping[str, Any]) -> None:
        self._clock, self._guard, self._options = clock, guard, dict(options)

    def look(self, address: Address, now: float) -> Seen:
        """What the system says of the file; now is a moment before this call."""
        system, path = self._system(address)
        with telling(address.url):
            system.invalidate_cache()  # others write there too
            info = system.info(path)
        return self._seen(address, info, system.storage_options, now)

    def read(self, address: Address, allowance: Allowance | None = None) -> Reading:
        """The content of the file, whose version did not change while it was read.

        Raises UnreadInputError if it changes, or if the allowance does not grant it.
        """
        for _ in range(failures.ATTEMPTS):
            seen = self.look(address, self._clock.now())
            digest, size = self._digest(address, seen, allowance)
            if self.look(address, self._clock.now()).stamp == seen.stamp:
                return Reading(Seen(seen.url, size, seen.stamp, seen.trust), digest)
        raise failures.restless(address.url)

    def is_exposed(self, address: Address) -> bool:
        """Whether the server itself could give one thing to whom hashes it, and another to the engine."""
        return address.url.partition("://")[0] not in _HONEST

    def _system(self, address: Address) -> tuple[Any, str]:
        return open_system(address, self._options)

    def _seen(self, address: Address, info: Mapping[str, Any], options: Mapping[str, Any], now: float) -> Seen:
        if info.get("type") == "directory":
            raise failures.folder(address.url)
        size = info.get("size")
        server = encoded_options(options)
        encoded = joined(
            "remote", address.url, server or b"", _environment(), "" if size is None else str(int(size)), _version(info)
        )
        plain = address.plain and server is not None and _account_is_told(address.url, options)
        trust = _trust(address.url, info, now, self._guard) if plain else Trust.NEVER
        return Seen(address.url, None if size is None else int(size), stamp_of(encoded), trust)

    def _digest(self, address: Address, seen: Seen, allowance: Allowance | None) -> tuple[bytes, int]:
        system, path = self._system(address)
        hasher, size = blake3.blake3(), 0
        if allowance is not None and not allowance.take(seen.size or 0):
            raise failures.too_large(address.url)
        try:
            with telling(address.url):
                for block in _blocks(system, path, seen.size):
                    if size and allowance is not None and allowance.is_over():
                        raise failures.too_slow(address.url)
                    hasher.update(block)
                    size += len(block)
                    # A server may send without end, whatever it says.
                    if size > (seen.size or 0) and allowance is not None and not allowance.take(len(block)):
                        raise failures.too_large(address.url)
        except UnreadInputError:
            raise
        except InputFailure as failure:
            if seen.trust is not Trust.NEVER:
                raise
            raise InputFailure(
                f"{address.url} has no version to rely on, and cannot be read to find out: {failure.args[-1]}. "
                f'If it changes at most once in a while, say how long it stays valid: nectar.valid_for(source, "1d")'
            ) from None
        return hasher.digest(), size


def open_system(address: Address, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of fsspec for the address, and the path in it."""
    try:
        core = import_module("fsspec.core")  # only who uses a URL needs it
    except ImportError:
        raise MissingExtraError("fsspec", "remote") from None
    with telling(address.url):
        system, path = core.url_to_fs(address.given, **options)
    return system, path


@contextmanager
def telling(url: str) -> Iterator[None]:
    """Any failure within becomes an InputFailure without credentials, so the client's own error is not shown."""
    try:
        yield
    except InputFailure:
        raise
    except ImportError as error:
        raise InputFailure(f"{url} cannot be read: {error.name or 'a package for it'} is not installed") from None
    except Exception as error:  # clients raise what they like
        raise failures.unreadable(url, error) from None


def _blocks(system: Any, path: str, size: int | None) -> Iterator[bytes]:
    if size is not None and size <= _BLOCK:
        yield bytes(system.cat_file(path))
        return
    with system.open(path, "rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _first(info: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((info[name] for name in names if info.get(name)), None)


def _version(info: Mapping[str, Any]) -> bytes:
    """All that is said of the version, tagged."""
    found = [(names[0], _first(info, names)) for names in (_VERSIONS, _CHECKSUMS, _ETAGS, _TIMES)]
    return joined(*(part for tag, value in found if value is not None for part in (tag, _text(value))))


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def _trust(url: str, info: Mapping[str, Any], now: float, guard: float) -> Trust:
    if _first(info, _VERSIONS) is not None or _first(info, _CHECKSUMS) is not None:
        return Trust.NOW
    etag, modified = _first(info, _ETAGS), _seconds(_first(info, _TIMES))
    strong = etag is not None and not str(etag).startswith("W/")
    if strong and (modified is None or url.partition("://")[0] in _OBJECT_STORES):
        return Trust.NOW
    if modified is None:
        return Trust.NEVER
    return Trust.NOW if now - modified >= guard else Trust.LATER


def _seconds(time: Any) -> float | None:
    """Seconds since 1970, None if it is not told in a way that can be understood."""
    if isinstance(time, str):
        time = _parsed(time)
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return float(time) if isinstance(time, int | float) and not isinstance(time, bool) else None


def _parsed(time: str) -> datetime | None:
    """From ISO 8601, or from the form of mails and of HTTP."""
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        pass
    try:
        mail = import_module("email.utils")  # takes milliseconds to load, and only servers of pages need it
        return cast("datetime", mail.parsedate_to_datetime(time))
    except (ValueError, TypeError):
        return None


def _environment() -> bytes:
    set_here = [(name, os.environ[name]) for name in _CHOOSING_VARIABLES if name in os.environ]
    return joined(*(part for name, value in set_here for part in (name, without_credentials(value)[0])))


def _account_is_told(url: str, options: Mapping[str, Any]) -> bool:
    """A container of Azure means nothing without its account, which may also hide in a connection string."""
    scheme, _, rest = url.partition("://")
    if scheme not in AZURE:
        return True
    return "@" in rest.partition("/")[0] or "account_name" in options or "AZURE_STORAGE_ACCOUNT_NAME" in os.environ


def encoded_options(options: Mapping[str, Any]) -> bytes | None:
    """The options that choose a server or an account, without credentials; None if it cannot be told what they do."""
    parts: list[bytes | str] = []
    for name in sorted(map(str, options)):
        if name.lower() in _CREDENTIALS:
            continue
        value = options[name]
        if isinstance(value, Mapping):
            inner = encoded_options(value)
            if inner is None:
                return None
            parts += [name, "mapping", inner]
        elif value is None or isinstance(value, bool | int | float):
            parts += [name, type(value).__name__, repr(value)]
        elif isinstance(value, str) and name.lower() in _CHOOSING_OPTIONS:
            parts += [name, "str", without_credentials(value)[0]]
        else:
            return None
    return joined(*parts)


# Text under any other name may be a secret, or hold one (a connection string): it is not taken in, nor passed over.
_CHOOSING_OPTIONS: Final = frozenset({
    "endpoint_url", "endpoint", "region", "region_name", "project", "account_name", "account_host", "profile", "host",
    "protocol", "cache_region", "signature_version", "addressing_style", "api_version", "consistency", "access",
})  # fmt: skip
