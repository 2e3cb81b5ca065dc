"""What names a file or a text that is to be forgotten, and what only has a name like it."""

import json
import pickle
from urllib.parse import quote

import msgspec
import pytest

from nectar.model.wanted import Wanted

NAMED = [
    "/d/a", "'/d/a'", '"/d/a"', "read /d/a now", "/d/a.", "/d/a...", "/d/a:3", "/d/a, /d/b", "/d/a/x.csv", "(/d/a)",
    "file:/d/a", "file:///d/a", "path=/d/a", "/d/a?version=1", "/d/a#x", "[/d/a]", "/d/a\n", "...//d/a", ".../d/a",
    repr("they\n/d/a\nsay"), json.dumps("they\n/d/a\tsay"), quote("/d/a/x", safe=""), quote("file:///d/a", safe=""),
    "/d/a\\nx", "/d/abc /d/a", "/mnt/d/a and /d/a",
]  # fmt: skip
OTHERS = [
    "/d/abc.csv", "/d/a.csv", "/d/a-1", "/d/a_1/x", "/d/a=1/x", "/d/a~", "/d/a*.csv", "/d/a%C3%A4", "/mnt/d/a", "./d/a",
    "x/d/a", "s3-d/d/a", "/d/A", "/d", "/d/", "d/a", "/d/a.tar.gz", "/d/aü", quote("/d/abc", safe=""),
    quote("/mnt/d/a", safe=""), json.dumps("/d/abc"), "",
]  # fmt: skip


@pytest.mark.parametrize("text", NAMED)
def test_a_file_is_named(text):
    wanted = Wanted(("/d/a",), ())
    assert wanted.in_text(text)
    assert wanted.in_content(text.encode())
    assert Wanted(("/d/a",), (), OTHERS).in_bytes(text.encode()), "whatever else is known"
    assert Wanted(("/d/a/",), ()).in_text(text), "as a folder"


@pytest.mark.parametrize("text", OTHERS)
def test_another_name_is_none_of_it(text):
    wanted = Wanted(("/d/a",), ())
    assert not wanted.in_text(text)
    assert not wanted.in_content(text.encode())
    others = list(wanted.others_in(text))
    assert not Wanted(("/d/a",), (), others, enough=1).in_bytes(text.encode())
    assert all(other in text for other in others)
    assert bool(others) == ("/d/a" in text or "%2Fd%2Fa" in text)


def _cbor(texts):
    return b"".join(
        bytes([0x60 + len(text)] if len(text) < 24 else [0x78, len(text)]) + text.encode() for text in texts
    )


def _column(texts):
    return "".join(texts).encode("utf-32-le")


@pytest.mark.parametrize("written", [pickle.dumps, msgspec.msgpack.encode, _cbor, _column])
@pytest.mark.parametrize("behind", ["abc", "x" * 97, "xy"])
def test_in_bytes_a_name_ends_wherever_it_may(written, behind):
    """The sign behind it may be the length of what comes next, or belong to the next value of a column."""
    known = ("/d/abcd.csv", "/mnt/d/a", "/d/a.csv/x", "/d/ab", "/d/d/a", "/d/a%")
    assert Wanted(("/d/a",), (), known).in_bytes(written(["/d/a", behind]))
    assert not Wanted(("/d/a",), (), known).in_bytes(written(["/d/abcd.csv", "/mnt/d/a"]))
    assert not Wanted(("/d/a",), (), known).in_bytes(written(["/d/abcd.csv/x", "/d/a.csv"]))


def test_an_address_is_named_as_a_whole():
    wanted = Wanted(("s3://bucket/a",), ())
    for text in ("s3://bucket/a", "s3://bucket/a/x", "'s3://bucket/a'", "s3://bucket/a?v=1"):
        assert wanted.in_text(text)
    for text in ("s3://bucket/ab", "s3://bucket", "gs3://bucket/a", "s3://bucket/a.csv"):
        assert not wanted.in_text(text)


def test_a_text_is_looked_for_wherever_it_stands():
    wanted = Wanted((), ("ann",))
    assert wanted.in_text("joanna")
    assert wanted.in_content(b"joanna")
    assert wanted.in_bytes(b"\0joanna\0")
    assert wanted.in_bytes("joanna".encode("utf-16-le"))
    assert not list(wanted.others_in("joanna"))


def test_texts_that_were_cut_off_count_by_their_beginnings():
    wanted = Wanted((), ("a long password of somebody",))
    assert wanted.in_text("f(x='a long pas...')")
    assert not wanted.in_text("f(x='a lo...')")
    assert wanted.in_text('"a long password of somebody"')
    assert Wanted((), ('say "x"\n',)).in_text(json.dumps('they say "x"\n there'))
    assert Wanted((), ("müller",)).in_text("f(name='m%C3%BCller')")
    assert Wanted(("/data/orders.parquet",), ()).in_text("scan of /data/orders.p...")


def test_what_was_left_out_of_an_address_is_no_beginning():
    assert not Wanted(("https://host/x",), ()).in_text("https://...@other/y")


def test_nothing_is_looked_for_if_nothing_is_asked_for():
    wanted = Wanted((), ())
    assert not wanted
    assert not wanted.in_text("")
    assert not wanted.in_content(b"anything")
    assert not wanted.in_bytes(b"\0")


def test_other_names_are_looked_up_and_not_tried_one_by_one():
    others = [f"/d/a{number}.csv" for number in range(20_000)]
    wanted = Wanted(("/d/a",), (), others)
    content = b"\0".join(other.encode() for other in others)
    assert not wanted.in_bytes(content)
    assert wanted.in_bytes(content + b"\0/d/a")
    assert wanted.margin < 100


@pytest.mark.parametrize("text", ['Mac"Dowell\\7731', "O'Hara\t7", 'Zoë "Z" 7'])
def test_a_text_is_found_however_it_is_quoted(text):
    wanted = Wanted((), (text,))
    for once in (text, repr(text), json.dumps(text)):
        for twice in (once, json.dumps(once), json.dumps(once, ensure_ascii=False), repr(once)):
            assert wanted.in_content(f"before {twice} after".encode())
