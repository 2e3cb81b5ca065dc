"""A program that holds a credential in every place that a program can hold one; each has a number of its own.

The last argument is the text that all of them begin with. Nectar is on; the second run changes a function and a plan.
"""

import dataclasses
import functools
import logging
import os
import sys
import time
import warnings

import polars as pl

import nectar

logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
logging.getLogger("asyncio").setLevel(logging.ERROR)
CANARY = sys.argv[2]
AGAIN = sys.argv[1] == "again"


def canary(number):
    """The canary of a place."""
    return f"{CANARY}{number:02d}x"


@dataclasses.dataclass
class Database:
    url: str
    password: str


class Client:
    def __init__(self, token):
        self.token = token

    def __call__(self, value):
        time.sleep(0.0005)
        return value + len(self.token)


API_KEY = canary(1)
SETTINGS = {"host": "db", "password": canary(2), "headers": {"Authorization": f"Bearer {canary(3)}9"}}
URL = f"postgresql://bob:{canary(4)}@db/x"


@nectar.memo
def by_name(n, password, *, api_key="x", **options):
    time.sleep(0.02)
    return n * 2


@nectar.memo
def by_look(dsn, url, header, note):
    time.sleep(0.02)
    return len(dsn)


@nectar.memo
def by_object(database, settings, given):
    time.sleep(0.02)
    return [1] * 10


@nectar.memo
def reads_globals(n):
    time.sleep(0.02)
    return n + len(API_KEY) + len(SETTINGS["password"]) + len(URL) + (3 if AGAIN else 2)


@nectar.memo
def fails(url):
    raise OSError(f"no route to {url}")


@nectar.memo
def impure(url):
    open(os.devnull).close()
    warnings.warn(f"deprecated: {url.partition('://')[0]}", stacklevel=1)
    return os.getpid()


def with_default(value, token=canary(5)):
    time.sleep(0.0005)
    return value + len(token)


def with_closure():
    secret = canary(6)

    def inner(value):
        time.sleep(0.0005)
        return value + len(secret)

    return inner


def with_part(value, api_key):
    time.sleep(0.0005)
    return value + len(api_key)


def with_global(value):
    time.sleep(0.0005)
    return value + len(API_KEY) + len(SETTINGS) + len(URL)


def calls():
    """Memoised functions."""
    by_name(1, canary(10), api_key=canary(11), secret_token=canary(12))
    by_look(
        f"host=db password={canary(13)}", f"https://x/y?sig={canary(14)}&X-Amz-Signature={canary(15)}",
        f"Authorization: Bearer {canary(16)}9", f"mysql://{canary(17)}:{canary(18)}@h/x",
    )  # fmt: skip
    by_object(Database(f"postgresql://a:{canary(19)}@b/c", canary(20)), SETTINGS, functools.partial(max, canary(21)))
    reads_globals(1)
    for call in (fails, impure):
        try:
            call(f"postgresql://bob:{canary(22)}@db/x")
        except OSError as error:
            print(type(error).__name__)
    by_name(os.getpid(), canary(23))


def queries():
    """Polars programs."""
    pl.DataFrame({"a": range(300), "password": ["x"] * 300}).write_parquet("data.parquet")
    scan = pl.scan_parquet("data.parquet", storage_options={"secret_access_key": canary(30), "token": canary(31)})
    step = 2 if AGAIN else 1
    functions = [
        with_default,
        with_closure(),
        functools.partial(with_part, api_key=canary(32)),
        with_global,
        Client(canary(33)),
    ]
    for function in functions:
        query = scan.select(pl.col("a").map_elements(function, return_dtype=pl.Int64) + step)
        print(nectar.explain(query))
        query.collect()
    secret = scan.filter(pl.col("password") != canary(34)).with_columns(token=pl.lit(canary(35)))
    secret = secret.select(
        pl.col("a").sum() + step,
        pl.col("token").str.len_chars().first(),
        url=pl.lit(f"https://u:{canary(36)}@h/x").str.len_chars(),
    )
    print(nectar.explain(secret))
    secret.collect()
    frame = pl.scan_csv("data.csv").select(pl.col("a").map_elements(with_default, return_dtype=pl.Int64).sum())
    nectar.save(frame, "team/a", note=f"from postgresql://bob:{canary(37)}@db/x with password={canary(38)}")


pl.DataFrame({"a": range(100)}).write_csv("data.csv")
nectar.enable()
calls()
queries()
report = nectar.last_run()
nectar.disable()
print(report, report.details())
