"""Functions as people write them: they use libraries, and what they do while they run is no reason not to keep them."""

import asyncio
import bisect
import collections
import contextlib
import dataclasses
import datetime
import decimal
import fractions
import functools
import hashlib
import io
import itertools
import json
import logging
import re
import statistics
import string
import tempfile
import textwrap
import threading
import traceback
import urllib.parse
import warnings
import xml.etree.ElementTree
import zlib
import zoneinfo
from concurrent.futures import ThreadPoolExecutor

import nectar

KINDS = {}
log = logging.getLogger("of usual programs")


def usual(function):
    KINDS[function.__name__] = function
    return function


@usual
def import_inside(n):
    import calendar
    import colorsys

    return calendar.isleap(n), colorsys.rgb_to_hls(0.1, 0.2, 0.3)


@usual
def import_of_a_library_inside(n):
    import boltons.iterutils
    import more_itertools

    return boltons.iterutils.chunked(list(range(n)), 3), more_itertools.first([n])


@usual
def regular_expression(n):
    return re.compile(rf"(\d{{{n % 9}}})").findall("2024 1234 99")


@usual
def time_zone(n):
    return datetime.datetime(2020, 1, n % 27 + 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")).isoformat()


@usual
def json_text(n):
    return json.loads(json.dumps({"a": [n, None, 1.5]}))


@usual
def pandas_groups(n):
    import pandas

    frame = pandas.DataFrame({"a": [1, 2, 2], "b": [1.0, n, 3.0]})
    return frame.groupby("a").agg({"b": ["sum", "mean"]}).reset_index()


@usual
def pandas_text(n):
    import pandas

    return pandas.DataFrame({"a": [n, 2, 2]}).to_string(), pandas.DataFrame({"a": [n]}).to_csv()


@usual
def polars_groups(n):
    import polars

    return polars.DataFrame({"a": [1, 2, 2], "b": [1, n, 3]}).group_by("a").agg(polars.col("b").sum()).sort("a")


@usual
def polars_lazy(n):
    import polars

    return polars.LazyFrame({"a": [1, 2, n]}).filter(polars.col("a") > 1).collect()


@usual
def logging_of_steps(n):
    log.info("step %d", n)
    log.warning("step %d", n)
    return n + 1


@usual
def printing(n):
    print("step", n)
    return n + 2


@usual
def seeded_generator(n):
    import numpy

    return numpy.random.default_rng(n).random(5).tolist()


@usual
def linear_algebra(n):
    import numpy

    return numpy.linalg.inv(numpy.eye(4) * (n + 1)).round(6)


@usual
def a_warning(n):
    warnings.warn(f"of usual programs {n % 2}", UserWarning, stacklevel=2)
    return n


@usual
def filters_for_a_block(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return n * 3


@usual
def decimals_for_a_block(n):
    with decimal.localcontext() as context:
        context.prec = 5
        return decimal.Decimal(1) / decimal.Decimal(n)


@usual
def workers(n):
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(abs, range(-n, 0)))


@usual
def a_thread(n):
    found = []
    thread = threading.Thread(target=found.append, args=(n,))
    thread.start()
    thread.join()
    return found


@usual
def archive_in_memory(n):
    with io.BytesIO() as file:
        file.write(zlib.compress(str(n).encode()))
        return hashlib.sha256(file.getvalue()).hexdigest()


@usual
def xml_text(n):
    return xml.etree.ElementTree.fromstring(f"<a><b>{n}</b></a>").findtext("b")


@dataclasses.dataclass
class Config:
    size: int = 3
    names: list[str] = dataclasses.field(default_factory=list)


@usual
def configured(n):
    config = Config(n, ["README.md", "/", "."])
    return dataclasses.asdict(config)


@usual
def standard_containers(n):
    counted = collections.Counter(itertools.islice(itertools.cycle("abc"), n))
    return counted.most_common(), bisect.bisect([1, 2, 3], n), statistics.median([1, n])


@usual
def texts(n):
    return textwrap.shorten(string.ascii_letters * n, 20), urllib.parse.urlsplit(f"http://a/{n}").path


@usual
def arrow_sums(n):
    import pyarrow
    import pyarrow.compute

    return pyarrow.compute.sum(pyarrow.array([1, 2, n])).as_py()


@usual
def toolz_pipe(n):
    import toolz

    return toolz.pipe(n, lambda x: x + 1, lambda x: x * 2)


@usual
def local_cache(n):
    @functools.lru_cache
    def fibonacci(k):
        return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)

    return fibonacci(n % 30)


@usual
def name_of_a_file_as_a_label(n):
    return {"source": "usual.py", "rows": n}


@nectar.pure
def vouched_for(n):
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write(str(n))
        file.seek(0)
        return file.read()


@usual
def helper_that_is_vouched_for(n):
    return vouched_for(n)


@usual
def fractions_of_numbers(n):
    return str(fractions.Fraction(n, 7))


@usual
async def coroutine(n):
    await asyncio.sleep(0)
    return n + 5


@usual
def redirected(n):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print(n)
    return out.getvalue()


@usual
def formatted_error(n):
    try:
        return [n][1]
    except IndexError as error:
        return traceback.format_exception_only(error)
