"""What reads the file or source that its first argument names, and does nothing else.

A function that gives such a reader something it was handed as a declared input (a file, a folder) reads what everybody
knows it reads. Data only; names as in deny.py.
"""

from __future__ import annotations

from typing import Final

READERS: Final[dict[str, str]] = {
    "builtins": "open",
    "io": "open open_code",
    "_io": "open open_code",
    "codecs": "open",
    "gzip": "open GzipFile",
    "bz2": "open BZ2File",
    "lzma": "open LZMAFile",
    "zipfile": "ZipFile",
    "tarfile": "open TarFile.open",
    "numpy": "load loadtxt genfromtxt fromfile",
    "pandas": "read_*",
    "polars": "read_* scan_*",
    "pyarrow": "memory_map OSFile",
    "pyarrow.parquet": "read_table read_pandas read_schema read_metadata ParquetFile",
    "pyarrow.csv": "read_csv open_csv",
    "pyarrow.json": "read_json open_json",
    "pyarrow.feather": "read_feather read_table",
    "pyarrow.orc": "read_table ORCFile",
    "pyarrow.dataset": "dataset",
    "PIL.Image": "open",
    "openpyxl": "load_workbook",
    "imageio": "imread",
    "geopandas": "read_*",
    "urllib.request": "urlopen",
    "requests": "get",
    "httpx": "get stream",
}
# Keywords by which readers take what they read.
SOURCES: Final = frozenset(
    {"path", "file", "filename", "name", "source", "sources", "fname", "fid", "io", "url", "input_file", "where"}
    | {"filepath_or_buffer", "path_or_buf", "path_or_buffer", "fileobj", "fp"}
)
MODES: Final = frozenset({"r", "rb", "rt", "br", "tr", "r:", "r:*", "r:gz", "r:bz2", "r:xz"})
# Readers that write if told so: position of the argument that says how it is opened.
MODE_AT: Final = dict.fromkeys(("open", "GzipFile", "BZ2File", "LZMAFile", "ZipFile", "TarFile.open"), 1)
MODE: Final = "mode"
