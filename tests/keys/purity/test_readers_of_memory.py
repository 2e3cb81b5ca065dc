"""Readers of files that are given what the function itself has put into memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from nectar.errors import NectarError
from nectar.keys.api import fingerprint

pd = pytest.importorskip("pandas")
BUFFER = io.StringIO("a\n1\n")
SUBSTITUTE = {"StringIO": open}


def rows_of_text(text):
    return pd.read_csv(io.StringIO(text))


def rows_of_text_in_a_variable(text):
    held = io.StringIO(text)
    return pd.read_csv(held, sep=";")


def names_in_an_archive(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.namelist()


def unpacked(data):
    return gzip.GzipFile(fileobj=io.BytesIO(data)).read()


def one_of_two(text, path):
    held = io.StringIO(text) if text else path
    return pd.read_csv(held)


def once_each(text, path):
    return pd.read_csv(io.StringIO(text)), pd.read_csv(path)


def handed_on(paths):
    return list(map(pd.read_csv, paths))


def a_file_of_the_program(n):
    return pd.read_csv(BUFFER)


def packed(data):
    held = io.BytesIO()
    with gzip.GzipFile(fileobj=held, mode="wb") as target:  # writes the time
        target.write(data)
    return held.getvalue()


def added_to_an_archive(data):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "a") as archive:  # writes the time
        archive.writestr("a", data)
    return held.getvalue()


def packed_members(data):
    held = io.BytesIO()
    tarfile.open(fileobj=held, mode="w:gz").close()  # writes the time
    return held.getvalue()


def made_by_another(text):
    return pd.read_csv(SUBSTITUTE["StringIO"](text))


@pytest.mark.parametrize("function", [rows_of_text, rows_of_text_in_a_variable, names_in_an_archive, unpacked])
def test_what_is_in_memory_is_no_file(function):
    assert fingerprint(function)


@pytest.mark.parametrize(
    "function",
    [
        one_of_two,
        once_each,
        handed_on,
        a_file_of_the_program,
        packed,
        packed_members,
        added_to_an_archive,
        made_by_another,
    ],
)
def test_what_may_be_a_file_or_is_written_is_refused(function):
    with pytest.raises(NectarError):
        fingerprint(function)
