"""Settings that libraries keep for the process: what shows in results is part of the fingerprint, or is refused."""

import argparse
import contextlib
import datetime as dt
import decimal
import logging
import sys
import threading
import time
import types

import pytest
from tests.observation.installed import forget, install

import nectar
from nectar.errors import UncacheableError
from nectar.keys.preferences import PREFERENCES


@contextlib.contextmanager
def item(holder, name, value):
    before = holder[name]
    holder[name] = value
    try:
        yield
    finally:
        holder[name] = before


def changes(function, set_it):
    before = nectar.fingerprint(function)
    with set_it():
        within = nectar.fingerprint(function)
    return within != before and nectar.fingerprint(function) == before


def test_style_of_matplotlib():
    figure = pytest.importorskip("matplotlib.figure")
    matplotlib = pytest.importorskip("matplotlib")
    assert changes(
        lambda x: figure.Figure().subplots().plot(x), lambda: item(matplotlib.rcParams, "axes.facecolor", "r")
    )


def test_epoch_of_dates_of_matplotlib():
    dates = pytest.importorskip("matplotlib.dates")
    changed = changes(lambda x: dates.date2num(x), lambda: item(vars(dates), "_epoch", "0000-12-31T00:00:00"))
    assert changed


def test_palette_of_seaborn():
    seaborn = pytest.importorskip("seaborn")
    assert changes(lambda x: seaborn.color_palette(), lambda: seaborn.color_palette("pastel"))


def test_configuration_of_sklearn():
    sklearn = pytest.importorskip("sklearn")
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler
    assert changes(lambda d: scaler().fit_transform(d), lambda: sklearn.config_context(transform_output="pandas"))


def test_options_of_xarray():
    xarray = pytest.importorskip("xarray")
    assert changes(lambda d: xarray.Dataset(d).mean(), lambda: xarray.set_options(keep_attrs=True))


def test_constructors_and_representers_of_yaml():
    yaml = pytest.importorskip("yaml")
    read, written = (lambda text: yaml.safe_load(text)), (lambda value: yaml.safe_dump(value))
    before = nectar.fingerprint(read), nectar.fingerprint(written)
    yaml.SafeLoader.add_constructor("!nt_x", lambda loader, node: 1)
    yaml.SafeDumper.add_representer(dt.timedelta, lambda dumper, value: dumper.represent_str("x"))
    try:
        assert nectar.fingerprint(read) != before[0]
        assert nectar.fingerprint(written) != before[1]
    finally:
        del yaml.SafeLoader.yaml_constructors["!nt_x"]
        del yaml.SafeDumper.yaml_representers[dt.timedelta]
    assert (nectar.fingerprint(read), nectar.fingerprint(written)) == before


@pytest.mark.parametrize("loader", ["FullLoader", "SafeLoader"])
def test_classes_of_the_program_that_register_themselves_with_yaml(loader, monkeypatch):
    yaml = pytest.importorskip("yaml")
    for each in ("Loader", "FullLoader", "UnsafeLoader", "SafeLoader"):
        monkeypatch.setattr(getattr(yaml, each), "yaml_constructors", dict(getattr(yaml, each).yaml_constructors))
    kind = getattr(yaml, loader)
    before = nectar.fingerprint(lambda text: yaml.load(text, kind))

    class Point(yaml.YAMLObject):
        yaml_tag = "!nt_point"
        yaml_loader = kind

    after = nectar.fingerprint(lambda text: yaml.load(text, kind))
    Point.scale = 2
    assert len({before, after, nectar.fingerprint(lambda text: yaml.load(text, kind))}) == 3


def test_arguments_of_the_program():
    with pytest.raises(UncacheableError, match="parse_args"):
        nectar.fingerprint(lambda x: argparse.ArgumentParser().parse_args())
    nectar.fingerprint(lambda x: argparse.ArgumentParser().parse_args(x))
    nectar.fingerprint(lambda x: argparse.ArgumentParser().parse_known_args(args=x))


def test_proxies_and_folders_of_the_machine():
    utils = pytest.importorskip("requests").utils
    platformdirs = pytest.importorskip("platformdirs")
    for function in (lambda u: utils.get_environ_proxies(u), lambda u: platformdirs.user_cache_dir(u)):
        with pytest.raises(UncacheableError, match="depends on the machine"):
            nectar.fingerprint(function)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone cannot be set")
def test_zone_of_the_machine(monkeypatch):
    tz = pytest.importorskip("dateutil.tz")

    def with_dateutil(n):
        return dt.datetime(2020, 1, n, tzinfo=tz.tzlocal())

    def with_pandas(stamp):
        return stamp.tz_localize("tzlocal()")

    found = []
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        found.append((nectar.fingerprint(with_dateutil), nectar.fingerprint(with_pandas)))
    monkeypatch.undo()
    time.tzset()
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]


def test_context_of_gmpy2(monkeypatch):
    """Its precision counts; its flags do not, which computing raises by itself."""
    context = types.SimpleNamespace(precision=53, inexact=False)
    monkeypatch.setitem(sys.modules, "gmpy2", types.SimpleNamespace(get_context=lambda: context))
    before = PREFERENCES["gmpy2"]()
    context.inexact = True
    assert PREFERENCES["gmpy2"]() == before
    context.precision = 106
    assert PREFERENCES["gmpy2"]() != before


def test_decimals_of_new_threads(monkeypatch):
    def third(n):
        return decimal.Decimal(1) / n

    before = nectar.fingerprint(third)
    monkeypatch.setattr(decimal.DefaultContext, "prec", 4)
    assert nectar.fingerprint(third) != before


@pytest.mark.parametrize(
    "function", [lambda x: logging.makeLogRecord({"msg": x}), lambda x: _LOCK.locked(), lambda x: _OWNED._is_owned()]
)
def test_states_that_others_change(function):
    with pytest.raises(UncacheableError):
        nectar.fingerprint(function)


_LOCK, _OWNED = threading.Lock(), threading.RLock()


def test_class_methods_of_compiled_classes_are_judged_by_their_names():
    now = pytest.importorskip("whenever").Instant.now
    with pytest.raises(UncacheableError, match="reads the clock"):
        nectar.fingerprint(lambda x: now())


QUANTLIB = """
    class _Settings:
        evaluationDate = "January 1st, 2026"  # what native code says where nobody has set another: today
    class Settings:
        instance = staticmethod(lambda held=_Settings(): held)
    def price(): return 1.0
"""


def test_prices_of_quantlib_are_those_of_a_day(tmp_path, monkeypatch):
    """The day is asked of the clock by its native code, which nobody sees."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "QuantLib"]:
        monkeypatch.delitem(sys.modules, name)
    library = install(tmp_path, monkeypatch, "QuantLib", {"QuantLib/__init__.py": QUANTLIB})
    try:
        assert PREFERENCES["QuantLib"]() == "January 1st, 2026"
        priced = lambda x: library.price()
        before = nectar.fingerprint(priced)
        monkeypatch.setattr(type(library.Settings.instance()), "evaluationDate", "January 2nd, 2026")
        assert nectar.fingerprint(priced) != before
    finally:
        forget("QuantLib")


def test_how_numpy_shows_what_is_masked():
    numpy = pytest.importorskip("numpy")
    option = numpy.ma.masked_print_option

    @contextlib.contextmanager
    def shown():
        option.set_display("?")
        try:
            yield
        finally:
            option.set_display("--")

    assert changes(lambda x: str(numpy.ma.array([1, 2], mask=[0, 1])), shown)
