"""Identities behind URLs: in memory, from a server on this machine, and from systems that are made up."""

import logging
import threading
from contextlib import nullcontext
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import blake3
import fsspec
import pytest
from tests.store.inputs.test_identify import Counting
from tests.store.making import fresh_url

from nectar.clock import ManualClock
from nectar.errors import InputFailure, MissingInputError, UnreadInputError
from nectar.keys.patience import patience
from nectar.store.inputs import remote as inputs_remote
from nectar.store.inputs.address import address_of
from nectar.store.inputs.expand import expand
from nectar.store.inputs.identify import Inputs, RememberedHere

NOW = 1_700_000_000.0
CANARY = "canary-4711"


def digest(data):
    return blake3.blake3(data).digest()


class System:
    """A file system with one file, which says of it what it is told to."""

    def __init__(self, content=b"data", options=None, **info):
        self.content, self.said, self.storage_options, self.reads = content, info, options or {}, 0

    def invalidate_cache(self):
        pass

    def info(self, path):
        return {"name": path, "size": len(self.content), "type": "file", **self.said}

    def cat_file(self, path):
        self.reads += 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


@pytest.fixture
def served(monkeypatch):
    """Puts a made-up system behind every URL."""

    def serve(system):
        monkeypatch.setattr(inputs_remote, "open_system", lambda address, options: (system, "path"))
        return system

    return serve


def identify(url="s3://bucket/a.csv", clock=None, **options):
    return Inputs(RememberedHere(), clock or ManualClock(NOW), **options).identify([url])[0]


@pytest.mark.parametrize(
    "version",
    [{"ETag": '"1"'}, {"VersionId": "v1"}, {"generation": "17"}, {"md5Hash": "abc="}, {"content_md5": b"\1\2"},
     {"ETag": '"1"', "LastModified": datetime.fromtimestamp(NOW, UTC)}, {"mtime": NOW - 10},
     {"Last-Modified": formatdate(NOW - 10, usegmt=True)}, {"updated": "2020-01-01T00:00:00Z"}],
)  # fmt: skip
def test_version_is_trusted_and_nothing_read(served, version):
    system = served(System(**version))
    first = identify()
    assert first.names == (first.origin,)
    assert system.reads == 0
    key = next(iter(version))
    system.said[key] = {"mtime": NOW - 9, "Last-Modified": formatdate(NOW - 9), "updated": "2020-01-01T00:00:01Z"}.get(
        key, "other"
    )
    assert identify().origin != first.origin


@pytest.mark.parametrize(
    ("url", "version"),
    [("s3://b/a", {"mtime": NOW - 1}), ("s3://b/a", {"mtime": NOW + 9}),
     ("https://h/a", {"ETag": '"1"', "Last-Modified": formatdate(NOW - 1, usegmt=True)}),
     ("https://h/a", {"ETag": 'W/"1"', "Last-Modified": formatdate(NOW, usegmt=True)})],
)  # fmt: skip
def test_version_made_from_a_recent_time_is_not_trusted_yet(served, url, version):
    system, clock, remembered = served(System(**version)), ManualClock(NOW), RememberedHere()
    one = Inputs(remembered, clock)
    first = one.identify([url])[0]
    assert (first.content, first.origin, len(first.names)) == (digest(b"data"), None, 1)
    assert (first.names[0] == first.content) is url.startswith("s3://"), "a server may give another thing to the engine"
    system.content = b"atad"
    assert one.identify([url])[0].content == digest(b"atad")
    clock.move(100)
    later = one.identify([url])[0]
    assert later.content == digest(b"atad")
    assert later.names[1:] == (later.origin,)
    assert one.identify([url]) == [later]
    assert system.reads == 3


@pytest.mark.parametrize("version", [{}, {"ETag": 'W/"1"'}, {"created": NOW - 1e6}, {"mtime": "some day"}])
def test_without_a_version_it_is_read_each_time_and_never_remembered(served, version):
    system, remembered = served(System(**version)), Counting()
    one = Inputs(remembered, ManualClock(NOW))
    before = one.identify(["s3://b/a"])
    assert before[0].names == (digest(b"data"),)
    assert one.changed(before) == []
    system.content = b"atad"
    assert one.identify(["s3://b/a"])[0].names == (digest(b"atad"),)
    assert one.changed(before) == ["s3://b/a was rewritten while it was read"]
    assert remembered.calls == []


def test_without_a_version_and_unreadable_tells_of_valid_for(served):
    system = served(System())
    system.cat_file = lambda path: exec("raise ConnectionError()")
    with pytest.raises(InputFailure, match=r'nectar\.valid_for\(source, "1d"\)'):
        identify()


def test_other_version_is_told_as_a_change(served):
    system = served(System(ETag='"1"'))
    one = Inputs(RememberedHere(), ManualClock(NOW))
    before = one.identify(["s3://b/a"])
    assert one.changed(before) == []
    system.said["ETag"] = '"2"'
    assert one.changed(before) == ["s3://b/a was rewritten, replaced or touched while it was read"]


def test_version_that_changes_while_it_is_read(served):
    system = served(System(mtime=NOW))
    read = system.cat_file

    def disturbed(path):
        content = read(path)
        if system.reads < 2:
            system.content, system.said["mtime"] = b"new" * system.reads, NOW + system.reads
        return content

    system.cat_file = disturbed
    identity = identify()
    assert (identity.content, identity.size, system.reads) == (digest(b"new"), 3, 2)


def test_what_there_is_no_time_for_is_not_fetched(served):
    system = served(System(b"x" * 1000, mtime=NOW))
    with pytest.raises(UnreadInputError, match="too much to be known by its content"), patience(0.0):
        identify()
    assert system.reads == 0
    with patience(1.0):
        assert identify().content == digest(b"x" * 1000)


@pytest.mark.parametrize("size", [None, 1 << 24])
def test_a_server_that_sends_without_end_is_given_up(served, monkeypatch, size):
    sent = []

    class Endless:
        def read(self, most):
            sent.append(most)
            return b"x" * most

    system = served(System(mtime=NOW, size=size))
    system.open = lambda path, mode: nullcontext(Endless())
    monkeypatch.setattr(inputs_remote, "_BLOCK", 1 << 20)
    with pytest.raises(UnreadInputError, match="too much to be known by its content"), patience(0.02):
        identify()
    assert sum(sent) < 50 << 20


def test_server_and_account_are_part_of_the_origin(served, monkeypatch):
    def origin(**options):
        served(System(ETag='"1"', options=options))
        return identify().origin

    plain = origin()
    elsewhere = origin(endpoint_url="http://minio:9000")
    assert elsewhere != plain
    assert origin(client_kwargs={"endpoint_url": "http://minio:9000"}) not in (plain, elsewhere)
    assert origin(endpoint_url="http://user:pass@minio:9000") == elsewhere
    assert origin(key=CANARY, secret="s", token="t", anon=False) == plain
    assert origin(headers={"Authorization": CANARY}) is None  # it may choose what is sent
    assert origin(connection_string=CANARY) is None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    assert origin() != plain


def test_container_of_azure_without_its_account_is_not_trusted(served, monkeypatch):
    served(System(etag="1"))
    assert identify("abfs://box/a").origin is None
    assert identify("abfs://box@account.dfs.core.windows.net/a").origin is not None
    assert identify("abfs://box@account/a").url == "abfs://box@account/a"
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert identify("abfs://box/a").origin is not None


@pytest.mark.parametrize(
    ("given", "shown", "plain"),
    [
        ("https://Host/a?id=5", "https://host/a?id=5", True),
        ("https://h/a?id=5#part", "https://h/a?id=5", True),
        (f"https://user:{CANARY}@h/a", "https://h/a", False),
        (f"https://h/a?X-Amz-Signature={CANARY}&X-Amz-Date=1&id=5", "https://h/a?id=5", True),
        (f"https://h/a?Signature={CANARY}&Expires=1&AWSAccessKeyId=x", "https://h/a", True),
        ("https://h/a?expires=1", "https://h/a?expires=1", True),
        (
            f"https://a.blob.core.windows.net/b/c?sv=1&se=2&sr=b&sig={CANARY}",
            "https://a.blob.core.windows.net/b/c",
            True,
        ),
        ("https://h/a?sv=1&sr=b", "https://h/a?sv=1&sr=b", True),
        (f"https://h/a?api_key={CANARY}&id=5", "https://h/a?id=5", False),
        (f"https://h/a?Token={CANARY}", "https://h/a", False),
        (f"https://h/a?id=5&dbPwd={CANARY}&jwt={CANARY}&accountKey={CANARY}", "https://h/a?id=5", False),
        (f"https://h/a?key={CANARY}&usertoken={CANARY}&PHPSESSION={CANARY}&oauth={CANARY}", "https://h/a", False),
        ("https://h/a?monkey=1&passage=2&design=3", "https://h/a?monkey=1&passage=2&design=3", True),
        ("s3://bucket/a b#c.csv", "s3://bucket/a b#c.csv", True),
        ("s3://bucket/a?versionId=7", "s3://bucket/a?versionId=7", True),
        (f"zip://a.csv::https://u:{CANARY}@h/a.zip", "zip://a.csv::https://h/a.zip", False),
        (f"sftp://me:{CANARY}@h/p", "sftp://h/p", False),
    ],
)
def test_credentials_are_left_out_and_what_chooses_bytes_is_not(given, shown, plain):
    address = address_of(given)
    assert (address.url, address.plain, address.given, address.local) == (shown, plain, given, False)


def test_path_with_colons_is_a_path(tmp_path):
    assert address_of(tmp_path / "a::b.csv").local
    assert address_of(tmp_path / "a:b://c").local


def test_what_only_a_secret_tells_apart_is_known_by_content(served):
    served(System(ETag='"1"'))
    one = Inputs(RememberedHere(), ManualClock(NOW))
    before = one.identify(["https://h/a?token=1"])
    assert before[0].origin is None
    assert one.changed(before) == []
    one.identify(["https://h/a?token=2"])
    assert "several credentials" in one.changed(before)[0]


def test_credentials_enter_no_identity_and_no_text(served, caplog):
    caplog.set_level(logging.DEBUG)
    url = f"https://me:{CANARY}@h/a.csv?X-Amz-Signature={CANARY}&token={CANARY}"
    system = served(System())
    one = Inputs(RememberedHere(), ManualClock(NOW), storage_options={"password": CANARY})
    before = one.identify([url])
    texts = [repr(before), caplog.text]
    system.content = b"other"
    texts += one.changed(before)

    def broken(path):
        raise ValueError(f"cannot fetch {url}")

    system.info = broken
    texts += one.changed(before)
    with pytest.raises(InputFailure) as caught:
        one.identify([url])
    texts.append(str(caught.value))
    assert caught.value.__suppress_context__  # the client's own message has the URL in it
    assert len(texts) == 5
    assert not [text for text in texts if CANARY in text]
    assert "https://h/a.csv cannot be read: ValueError" in texts[-1]


# memory://, through fsspec itself


def test_memory_is_known_by_content():
    url = f"{fresh_url()}/a.csv"
    fsspec.filesystem("memory").pipe_file(url, b"one")
    one = Inputs(RememberedHere(), ManualClock(NOW))
    before = one.identify([url])
    assert (before[0].url, before[0].size, before[0].names) == (url, 3, (digest(b"one"),))
    with fsspec.open(url, "r+b") as file:
        file.write(b"two")
    assert one.identify([url])[0].names == (digest(b"two"),)
    assert one.changed(before) == [f"{url} was rewritten while it was read"]
    fsspec.filesystem("memory").rm_file(url)
    assert one.changed(before) == [f"{url} was deleted or moved away while it was read"]
    with pytest.raises(MissingInputError, match="a.csv"):
        one.identify([url])


def test_large_remote_file_is_read_in_blocks(monkeypatch):
    monkeypatch.setattr(inputs_remote, "_BLOCK", 1000)
    url, data = f"{fresh_url()}/large", bytes(range(256)) * 20
    fsspec.filesystem("memory").pipe_file(url, data)
    assert identify(url).names == (digest(data),)


def test_local_and_remote_together_keep_their_order(tmp_path):
    (tmp_path / "a").write_bytes(b"here")
    url = f"{fresh_url()}/a"
    fsspec.filesystem("memory").pipe_file(url, b"there")
    found = Inputs(RememberedHere(), ManualClock(0)).identify([url, tmp_path / "a", url])
    assert [one.content for one in found] == [digest(b"there"), digest(b"here"), digest(b"there")]


def test_expand_behind_a_url():
    root, system = fresh_url(), fsspec.filesystem("memory")
    for name in ("b.csv", "a.csv", ".hidden", "sub/c.csv", ".git/d.csv"):
        system.pipe_file(f"{root}/{name}", b"")
    assert expand(root) == [f"{root}/{name}" for name in ("a.csv", "b.csv", "sub/c.csv")]
    assert expand(f"{root}/*.csv") == [f"{root}/a.csv", f"{root}/b.csv"]
    assert expand(f"{root}/a.csv") == [f"{root}/a.csv"]
    assert expand(f"{root}/*.parquet") == []
    with pytest.raises(MissingInputError, match="nowhere"):
        expand(f"{root}/nowhere")


def test_unknown_scheme_is_a_failure_that_names_the_url():
    with pytest.raises(InputFailure, match="strange://a/b cannot be read"):
        identify("strange://a/b")


# http, from a server on this machine


class Page(BaseHTTPRequestHandler):
    pages: dict[str, tuple[bytes, dict[str, str]]]
    fetched: list[str]

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.fetched.append(self.path)
        self.answer(body=True)

    def answer(self, body):
        content, headers = self.pages.get(self.path, (None, {}))
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body and content:
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    pytest.importorskip("aiohttp", reason="fsspec reads http with aiohttp, which is not installed")
    handler = type("Pages", (Page,), {"pages": {}, "fetched": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_page_with_an_etag_is_not_fetched(web):
    root, handler = web
    handler.pages["/a.csv?id=1"] = (b"one", {"ETag": '"1"'})
    one = Inputs(RememberedHere(), ManualClock(NOW))
    before = one.identify([f"{root}/a.csv?id=1"])
    assert before[0].names == (before[0].origin,)
    assert one.changed(before) == []
    handler.pages["/a.csv?id=1"] = (b"two", {"ETag": '"2"'})
    assert len(one.changed(before)) == 1
    assert one.identify([f"{root}/a.csv?id=1"])[0].origin != before[0].origin
    assert handler.fetched == []


def test_page_without_a_version_is_fetched_each_time(web):
    root, handler = web
    handler.pages["/a.csv"] = (b"one", {})
    one = Inputs(RememberedHere(), ManualClock(NOW))
    before = one.identify([f"{root}/a.csv"])
    assert before[0].names == (digest(b"one"),)
    handler.pages["/a.csv"] = (b"two", {})
    assert one.changed(before) == [f"{root}/a.csv was rewritten while it was read"]
    assert len(handler.fetched) == 2


def test_missing_page_is_named(web):
    root, _ = web
    with pytest.raises(MissingInputError, match="nowhere"):
        identify(f"{root}/nowhere")
