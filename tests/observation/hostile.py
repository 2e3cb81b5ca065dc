"""Functions that do, through libraries, what their code does not show. Each takes a folder that holds files of its own.

The tables of the purity analysis know few of these libraries on purpose: what is left is seen while they run.
"""

import configparser
import contextlib
import ctypes
import dbm.dumb
import email.message
import fileinput
import logging
import mailbox
import queue
import random
import shelve
import sqlite3
import subprocess
import sys
import threading
import tokenize
import trace
import urllib.request
import warnings
import wave
import xml.dom.minidom
import xml.etree.ElementTree
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

KINDS = {}


def hostile(function):
    KINDS[function.__name__] = function
    return function


def called(owner, name, *args, **kwargs):
    """Calls what only a name says, so that nobody sees beforehand what it is."""
    return getattr(owner, name)(*args, **kwargs)


# readers


@hostile
def element_tree(folder):
    return xml.etree.ElementTree.ElementTree(file=f"{folder}/a.xml").getroot().tag


@hostile
def minidom_through_a_name(folder):
    return called(xml.dom.minidom, "parse", f"{folder}/a.xml").documentElement.tagName


@hostile
def mbox(folder):
    return len(mailbox.mbox(f"{folder}/mail"))


@hostile
def config_class_of_its_own(folder):
    class Config(configparser.ConfigParser):
        pass

    config = Config()
    config.read(f"{folder}/a.ini")
    return config.sections()


@hostile
def config_that_is_missing(folder):
    class Config(configparser.ConfigParser):
        pass

    config = Config()
    config.read(f"{folder}/missing.ini")
    return config.sections()


@hostile
def path_method_by_name(folder):
    return called(Path(folder) / "a.txt", "read_text")


@hostile
def folder_by_name(folder):
    return sorted(each.name for each in called(Path(folder), "iterdir"))


@hostile
def lines_of_several_files(folder):
    return list(called(fileinput, "input", [f"{folder}/a.txt"]))


@hostile
def tokenized_source(folder):
    return called(tokenize, "open", f"{folder}/a.txt").read()


@hostile
def zip_member(folder):
    return called(zipfile, "ZipFile", f"{folder}/a.zip").read("a.txt")


@hostile
def wave_file(folder):
    return called(wave, "open", f"{folder}/a.wav").getnframes()


@hostile
def shelf(folder):
    with called(shelve, "open", f"{folder}/shelf") as found:
        return found.get("a")


@hostile
def simple_database(folder):
    with dbm.dumb.open(f"{folder}/dumb", "c") as found:
        return found.get("a")


@hostile
def sql_database(folder):
    with contextlib.closing(called(sqlite3, "connect", f"{folder}/a.db")) as connection:
        return connection.execute("SELECT count(*) FROM t").fetchall()


@hostile
def property_list_in_a_worker(folder):
    with ThreadPoolExecutor(2) as pool:
        return pool.submit(called, Path(folder) / "a.txt", "read_bytes").result()


@hostile
def read_in_a_thread_of_its_own(folder):
    found = queue.Queue()
    thread = threading.Thread(target=lambda: found.put(called(Path(folder) / "a.txt", "read_bytes")))
    thread.start()
    thread.join()
    return found.get()


@hostile
def memory_map_of_numpy(folder):
    import numpy

    return numpy.array(numpy.lib.format.open_memmap(f"{folder}/a.npy")).tolist()


@hostile
def data_source_of_numpy(folder):
    import numpy

    return numpy.lib.npyio.DataSource().open(f"{folder}/a.txt").read()


@hostile
def settings_of_joblib(folder):
    import joblib

    return called(joblib, "load", f"{folder}/a.joblib")


@hostile
def cache_of_others(folder):
    import diskcache

    with diskcache.Cache(f"{folder}/diskcache") as cache:
        return cache.get("a")


@hostile
def delimited_with_dask(folder):
    import dask.bag

    return called(dask.bag, "read_text", f"{folder}/a.txt").compute(scheduler="threads")


@hostile
def file_system_of_fsspec(folder):
    import fsspec.implementations.local

    return fsspec.implementations.local.LocalFileSystem().cat(f"{folder}/a.txt")


# readers that are not written in Python: nothing is told by the interpreter


@hostile
def arrow_file(path_of_arrow):
    import pyarrow

    return pyarrow.ipc.open_file(path_of_arrow).read_all().to_pydict()


@hostile
def polars_reader_by_name(path_of_csv):
    import polars

    return called(polars, "read_csv", path_of_csv).rows()


@hostile
def duckdb_reader(path_of_csv):
    import duckdb

    return called(duckdb, "connect").execute(f"select * from '{path_of_csv}'").fetchall()


@hostile
def arrow_dataset_in_a_list(paths_of_csv):
    import pyarrow.csv

    return [called(pyarrow.csv, "read_csv", path).to_pydict() for path in paths_of_csv]


@hostile
def symbols_of_libc(path_of_csv):
    libc = called(ctypes, "CDLL", None)
    number = libc.open(path_of_csv.encode(), 0)
    text = ctypes.create_string_buffer(100)
    libc.read(number, text, 100)
    libc.close(number)
    return text.value


# effects


@hostile
def csv_of_pandas(folder):
    import pandas

    pandas.DataFrame({"a": [1]}).to_csv(f"{folder}/out.csv")
    return 1


@hostile
def csv_of_polars(folder):
    import polars

    called(polars.DataFrame({"a": [1]}), "write_csv", f"{folder}/out.csv")
    return 1


@hostile
def table_of_arrow(path_of_new_file):
    import pyarrow.parquet

    called(pyarrow.parquet, "write_table", pyarrow.table({"a": [1]}), path_of_new_file)
    return 1


@hostile
def element_tree_written(folder):
    tree = xml.etree.ElementTree.ElementTree(xml.etree.ElementTree.Element("a"))
    called(tree, "write", f"{folder}/out.xml")
    return 1


@hostile
def coverage_report(folder):
    trace.CoverageResults(outfile=f"{folder}/out.counts").write_results(coverdir=folder)
    return 1


@hostile
def zip_written(folder):
    with called(zipfile, "ZipFile", f"{folder}/out.zip", "w") as out:
        out.writestr("a", "b")
    return 1


@hostile
def file_removed(folder):
    called(Path(folder) / "spare", "unlink", missing_ok=True)
    return 1


@hostile
def file_renamed(folder):
    source, target = Path(folder) / "moved", Path(folder) / "moved-again"
    with contextlib.suppress(OSError):
        called(source, "rename", target)
    return 1


@hostile
def folder_made(folder):
    called(Path(folder) / "new-folder", "mkdir", exist_ok=True)
    called(Path(folder) / "new-folder", "touch")
    return 1


@hostile
def another_process(folder):
    return called(subprocess, "check_output", [sys.executable, "-c", "print(1)"])


@hostile
def processes_of_joblib(folder):
    import joblib

    return joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(abs)(each) for each in (-1, -2))


@hostile
def local_address(folder):
    try:
        return called(urllib.request, "urlopen", "http://127.0.0.1:9/", timeout=0.2).read()
    except OSError:
        return "nobody answers"


@hostile
def requests_session(folder):
    import requests

    try:
        return called(requests, "get", "http://127.0.0.1:9/", timeout=0.2).text
    except OSError:
        return "nobody answers"


# generators and settings of the process


@hostile
def boundary_of_a_mail(folder):
    mail = email.message.EmailMessage()
    mail.set_content("x")
    mail.add_attachment(b"x", maintype="a", subtype="b")
    return mail.as_string()


@hostile
def shuffled_by_name(folder):
    values = list(range(10))
    called(random, "shuffle", values)
    return values


@hostile
def numpy_generator_of_all(folder):
    import numpy

    return called(numpy.random, "random")


@hostile
def pandas_sample_of_all(folder):
    import pandas

    return called(pandas.Series(range(100)), "sample", 3).tolist()


@hostile
def logging_configured(folder):
    logging.getLogger("of hostile programs").setLevel(logging.getLogger("of hostile programs").level % 50 + 10)
    return 1


@hostile
def filters_of_warnings(folder):
    warnings.filterwarnings("ignore", message=f"of hostile programs {len(warnings.filters)}")
    return 1


@hostile
def option_of_pandas(folder):
    import pandas

    called(pandas, "set_option", "display.max_rows", pandas.options.display.max_rows + 1)
    return 1


@hostile
def printing_of_numpy(folder):
    import numpy

    called(numpy, "set_printoptions", precision=numpy.get_printoptions()["precision"] % 12 + 1)
    return 1


@hostile
def setting_of_dask(folder):
    import dask

    called(dask.config, "set", {"hostile": dask.config.get("hostile", 0) + 1})
    return 1


# clocks


@hostile
def clock_of_a_log_record(folder):
    return logging.LogRecord("a", 20, "p", 1, "m", (), None).created


@hostile
def clock_of_a_query(folder):
    import polars

    return str(polars.DataFrame({"a": [1]}).sql("SELECT a, now() AS b FROM self").rows())


@hostile
def draw_of_a_query(query_with_a_draw):
    import duckdb

    return called(duckdb, "connect").execute(query_with_a_draw).fetchall()


@hostile
def clock_of_arrow(folder):
    import arrow

    return str(arrow.utcnow())


@hostile
def clock_of_pendulum(folder):
    import pendulum

    return str(pendulum.now("UTC"))


@hostile
def generator_of_a_library(folder):
    import faker

    return faker.Faker().sentence(20)
