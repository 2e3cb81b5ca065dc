"""The commands of the catalog as a person meets them: what they print where, and how they end."""

import json
import os
import time

import polars as pl
import pytest
from click.testing import CliRunner

from nectar.catalog.collect import GRACE
from nectar.catalog.embedded import INDEX, open_catalog
from nectar.cli.app import COMMANDS, main
from nectar.clock import ManualClock
from nectar.model.entry import Job
from nectar.overhead.steering import Steering
from nectar.settings import load_settings

TABLE = pl.DataFrame({"url": ["a", "b", "c"], "visits": [1, 2, 3]})
CATALOG_COMMANDS = ("ls", "show", "lineage", "export", "mount", "pin", "unpin", "rm", "stats", "gc", "check")


def key(number: int) -> bytes:
    return bytes([number]) * 32


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder of its own, and no settings from anywhere else."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("NECTAR_"):
            monkeypatch.delenv(name)
    return tmp_path / "home"


def catalog_in(home, **settings):
    clock = settings.pop("clock", None)
    return open_catalog(load_settings({"home": home, "reserve": 0, **settings}), clock=clock)


@pytest.fixture
def filled(home):
    """A table in a file, a small object in the catalog, an object that cannot be rebuilt; the first two were used."""
    catalog = catalog_in(home, protect=0, inline=0)
    catalog.keep(key(1), key(101), TABLE, table=True, seconds=252.0)
    catalog.keep(key(2), key(102), {"answer": "x" * 9000}, seconds=0.5, rebuildable=False)
    catalog.bind("team/top_urls", key(1))
    for number in (1, 1, 2):
        (known,) = catalog.lookup([key(number)], [key(100 + number)])
        catalog.open(known.entry).close()
    catalog.store.settle()
    catalog.close()
    catalog = catalog_in(home)
    catalog.keep(key(0xAB), key(103), [1, 2, 3], seconds=2.0)
    catalog.close()
    return home


def run(home, *arguments):
    return CliRunner().invoke(main, [*arguments, "--home", str(home)], catch_exceptions=False)


def good(home, *arguments):
    done = run(home, *arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def told(home, *arguments):
    """The JSON object of a command that is expected to be good."""
    return json.loads(good(home, *arguments, "--json"))


def failed(home, *arguments, code=1):
    """The paragraph on stderr of a command that is expected to fail."""
    done = run(home, *arguments)
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.stderr


# all of them


@pytest.mark.parametrize("command", CATALOG_COMMANDS)
def test_help(command):
    done = CliRunner().invoke(main, [command, "--help"])
    assert done.exit_code == 0
    assert "--home" in done.stdout
    assert "--json" in done.stdout


def test_every_command_is_known_by_its_name():
    assert {name: main.get_command(None, name).name for name in COMMANDS} == {name: name for name in COMMANDS}


@pytest.mark.parametrize("command", ["ls", "stats", "gc", "check"])
def test_without_a_catalog_there_is_nothing_and_nothing_is_made(home, command):
    good(home, command)
    told(home, command)
    assert not home.exists()


@pytest.mark.parametrize("command", ["show", "pin", "unpin"])
def test_without_a_catalog_there_is_no_entry(home, command):
    assert "no catalog" in failed(home, command, "ab")
    assert not home.exists()


@pytest.mark.parametrize("command", ["ls", "stats", "gc", "check"])
def test_index_from_the_future_is_a_paragraph(filled, command):
    catalog = catalog_in(filled)
    catalog.index._connection.execute("PRAGMA user_version=999")
    catalog.close()
    assert "newer version of Nectar" in failed(filled, command)


def test_errors_are_an_object_in_json(filled):
    done = run(filled, "show", "77", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["message"] in done.stderr


@pytest.mark.parametrize(
    "arguments", [("ls", "--sort", "colour"), ("ls", "--limit", "-1"), ("show",), ("gc", "--some")]
)
def test_wrong_usage(home, arguments):
    failed(home, *arguments, code=2)


def test_file_that_is_no_catalog_is_left_alone(home):
    home.mkdir()
    (home / INDEX).write_bytes(b"something else" * 1000)
    done = run(home, "check", "--repair", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["type"] == "CatalogFailure"
    assert "move the file away" in done.stderr
    assert (home / INDEX).read_bytes() == b"something else" * 1000


def test_settings_come_from_the_environment(filled, monkeypatch):
    monkeypatch.setenv("NECTAR_BUDGET", "1MB")
    monkeypatch.setenv("NECTAR_HOME", str(filled))
    done = CliRunner().invoke(main, ["stats", "--json"])
    record = json.loads(done.stdout)
    assert (record["budget"]["size"], record["entries"]) == (10**6, 3)


def test_setting_that_means_nothing_is_a_paragraph(filled, monkeypatch):
    monkeypatch.setenv("NECTAR_BUDGET", "much")
    assert "budget" in failed(filled, "ls")


def test_read_only_store_can_be_looked_at_and_not_changed(filled, monkeypatch):
    monkeypatch.setenv("NECTAR_READ_ONLY", "1")
    for arguments in (("ls",), ("stats",), ("show", "01"), ("gc",), ("check",)):
        good(filled, *arguments)
    for arguments in (("pin", "01"), ("gc", "--apply"), ("check", "--repair")):
        assert "may only be read" in failed(filled, *arguments)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything may be written here")
def test_folder_that_may_not_be_written_can_be_looked_at(filled):
    filled.chmod(0o500)
    try:
        good(filled, "ls")
        failed(filled, "pin", "01")
    finally:
        filled.chmod(0o700)


# ls


def test_ls_for_people(filled):
    text = good(filled, "ls")
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    table, lost, small = lines["010101010101"], lines["020202020202"], lines["abababababab"]
    assert "table" in table
    assert "4 min 12 s" in table
    assert "2x" in table
    assert "team/top_urls" in table
    assert "cannot be rebuilt" in lost
    assert "object" in small
    assert "new" in small
    assert "3 entries" in text


def test_ls_as_json(filled):
    record = told(filled, "ls")
    assert record["total"] == 3
    table = next(entry for entry in record["entries"] if entry["key"] == key(1).hex())
    assert (table["kind"], table["rows"], table["hits"], table["seconds"]) == ("table", 3, 2, 252.0)
    assert (table["names"], table["pinned"], table["rebuildable"]) == (["team/top_urls"], False, True)


@pytest.mark.parametrize(("order", "first"), [("size", 2), ("cost", 1), ("used", 0xAB)])
def test_ls_order(filled, order, first):
    assert told(filled, "ls", "--sort", order)["entries"][0]["key"] == key(first).hex()


def test_ls_limit(filled):
    assert len(told(filled, "ls", "--limit", "1")["entries"]) == 1
    assert len(told(filled, "ls", "--limit", "0")["entries"]) == 3
    assert "2 more" in good(filled, "ls", "--limit", "1")


def test_ls_names(filled):
    assert "team/top_urls" in good(filled, "ls", "--names")
    (name,) = told(filled, "ls", "--names")["names"]
    assert (name["name"], name["key"], name["version"], name["kept"]) == ("team/top_urls", key(1).hex(), 1, True)
    good(filled, "gc", "--all", "--apply")
    text = good(filled, "ls", "--names")
    assert "deleted" in text
    assert "1 deleted to make room: made again when read" in text
    (name,) = told(filled, "ls", "--names")["names"]
    assert (name["kept"], name["eviction"]) == (False, None)


def test_ls_after_everything_is_gone(filled):
    good(filled, "gc", "--all", "--apply")
    assert "Nothing is kept" in (text := good(filled, "ls"))
    assert "1 name can still be had" in text


# show


@pytest.mark.parametrize("text", ["0", "01", "010", key(1).hex(), key(1).hex().upper(), "team/top_urls"])
def test_show_finds_an_entry_by_any_beginning_of_its_key_and_by_name(filled, text):
    if text == "0":
        assert "2 keys begin with '0'" in failed(filled, "show", text)
    else:
        assert told(filled, "show", text)["key"] == key(1).hex()


def test_show_for_people(filled):
    text = good(filled, "show", "01")
    for piece in (key(1).hex(), key(101).hex(), "3 rows", "4 min 12 s", "2 times", "visits", "table-00000.arrow",
                  "team/top_urls", "eviction"):  # fmt: skip
        assert piece in text


def test_show_as_json(filled):
    record = told(filled, "show", "01")
    assert [column["name"] for column in record["schema"]] == ["url", "visits"]
    assert all(os.path.exists(path) for path in record["paths"])
    assert record["problem"] is None
    assert told(filled, "show", "ab")["inline"]


@pytest.mark.parametrize("text", ["77", "zz", "", "../..", "0" * 65])
def test_show_of_what_is_not_there(filled, text):
    assert "no key begins with" in failed(filled, "show", text)


def test_show_of_a_name_whose_result_is_gone(filled):
    good(filled, "gc", "--all", "--apply")
    assert "deleted to make room" in good(filled, "show", "team/top_urls")
    assert told(filled, "show", "team/top_urls")["kept"] is False


def test_show_is_no_use(filled):
    before = told(filled, "ls")["entries"]
    good(filled, "show", "01")
    assert told(filled, "ls")["entries"] == before


def test_show_says_what_is_wrong_and_leaves_it(filled):
    (path,) = told(filled, "show", "01")["paths"]
    with open(path, "ab") as file:
        file.write(b"more")
    assert "damaged" in good(filled, "show", "01")
    assert told(filled, "show", "01")["problem"].startswith("damaged")
    os.unlink(os.path.join(os.path.dirname(path), "manifest.json"))
    assert "missing" in told(filled, "show", "01")["problem"]


def test_show_says_whether_an_entry_would_go(filled, monkeypatch):
    assert "number 1 of 1 to go" in told(filled, "show", "01")["eviction"]
    assert "cannot be rebuilt" in told(filled, "show", "02")["eviction"]
    assert "new" in told(filled, "show", "ab")["eviction"]
    catalog = catalog_in(filled)
    catalog.lease(catalog.index.find("01"), 600)
    catalog.close()
    record = told(filled, "show", "01")
    assert "in use by" in record["eviction"]
    assert [lease["holds"] for lease in record["leases"]] == [True]
    assert "lease" in good(filled, "show", "01")
    good(filled, "pin", "02")
    monkeypatch.setenv("NECTAR_BUDGET", "1kB")
    assert "pinned" in told(filled, "show", "02")["eviction"]
    assert told(filled, "show", "ab")["evicted_next"]


# pin and unpin


def test_pin_and_unpin(filled):
    assert told(filled, "pin", "01") == {"key": key(1).hex(), "pinned": True, "changed": True}
    assert "already pinned" in good(filled, "pin", "01")
    assert "pinned" in good(filled, "ls")
    assert "kept" in good(filled, "gc", "--all", "--apply")
    assert [entry["key"] for entry in told(filled, "ls")["entries"]] == [key(1).hex()]
    assert told(filled, "unpin", "team/top_urls")["pinned"] is False
    assert "not pinned" in good(filled, "unpin", "01")


# gc


def test_gc_within_the_budget(filled):
    assert good(filled, "gc") == "Nothing has to go.\n"
    assert good(filled, "gc", "--apply") == "Nothing had to go.\n"


def test_gc_deletes_nothing_unless_told(filled, monkeypatch):
    monkeypatch.setenv("NECTAR_BUDGET", "9500")
    foreseen = told(filled, "gc")
    assert "would be freed" in good(filled, "gc")
    assert told(filled, "stats")["entries"] == 3
    applied = told(filled, "gc", "--apply")
    assert [entry["key"] for entry in foreseen["evicted"]] == [entry["key"] for entry in applied["evicted"]]
    assert key(1).hex() in [entry["key"] for entry in applied["evicted"]]
    assert foreseen["freed"] == applied["freed"] > 0
    assert told(filled, "stats")["total"] <= 9500


def test_gc_all_spares_what_is_in_use_or_pinned(filled):
    catalog = catalog_in(filled)
    catalog.lease(catalog.index.find("01"), 600)
    catalog.pin(key(0xAB))
    catalog.close()
    foreseen = told(filled, "gc", "--all")
    assert [entry["key"] for entry in foreseen["evicted"]] == [key(2).hex()]
    assert {entry["key"]: entry["reason"] for entry in foreseen["kept"]}.keys() == {key(1).hex(), key(0xAB).hex()}
    applied = told(filled, "gc", "--all", "--apply")
    assert [entry["key"] for entry in applied["evicted"]] == [key(2).hex()]
    assert applied["freed"] == foreseen["freed"]
    assert told(filled, "stats")["entries"] == 2


def test_gc_says_when_it_was_not_enough(filled, monkeypatch):
    good(filled, "pin", "02")
    monkeypatch.setenv("NECTAR_BUDGET", "1kB")
    assert "pinned or in use" in good(filled, "gc", "--apply")
    assert told(filled, "gc", "--apply")["still_over"] > 0
    good(filled, "unpin", "02")
    assert told(filled, "gc", "--apply")["still_over"] == 0


def test_gc_sweeps_files_of_nobody(filled):
    catalog = catalog_in(filled, inline=0)
    with catalog.store.stage(catalog.store.new_location(key(5))) as staging:
        staging.write_object("x" * 5000)
        location = staging.publish().location
    catalog.close()
    folder = filled / "results" / "data" / location
    long_ago = time.time() - GRACE - 100
    for path in (*folder.iterdir(), folder):
        os.utime(path, (long_ago, long_ago))
    assert location in good(filled, "gc")
    assert told(filled, "gc")["swept"] == [location]
    assert folder.exists()
    assert told(filled, "gc", "--apply")["freed"] > 5000
    assert not folder.exists()


# check


def test_check_of_a_good_store(filled):
    assert "agree" in good(filled, "check")
    assert "every byte was read" in good(filled, "check", "--thorough")
    assert told(filled, "check") == {"home": str(filled), "good": True, "findings": []}


def test_check_finds_and_repair_mends(filled):
    (path,) = told(filled, "show", "01")["paths"]
    os.truncate(path, 10)
    done = run(filled, "check", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["findings"][0]["what"] == "damaged result"
    assert "--repair" in done.stderr
    assert "mended" in good(filled, "check", "--repair")
    assert "agree" in good(filled, "check")
    assert "no key begins with" in failed(filled, "show", "01")


def test_wrong_byte_is_found_by_a_thorough_check(filled):
    (path,) = told(filled, "show", "01")["paths"]
    with open(path, "r+b") as file:
        file.seek(200)
        byte = file.read(1)
        file.seek(200)
        file.write(bytes([byte[0] ^ 1]))
    assert "1 thing is wrong" in failed(filled, "check", "--thorough")


def test_files_of_others_are_named_and_harm_nobody(filled):
    (filled / "results" / "data" / "notes.txt").write_text("mine")
    assert "harmless" in good(filled, "check", "--repair")
    assert (filled / "results" / "data" / "notes.txt").exists()


def test_lease_that_ran_out_harms_nobody(filled):
    catalog = catalog_in(filled, clock=ManualClock(1000.0))
    catalog.lease(catalog.index.find("01"), 1)
    catalog.close()
    assert "lapsed lease" in good(filled, "check")
    assert told(filled, "check", "--repair")["findings"][0]["mended"]
    assert told(filled, "check")["findings"] == []


# stats


def test_stats(filled):
    catalog = catalog_in(filled)
    catalog.put_recipe([b"code", b"more code"])
    catalog.log(Job(1.0, key(101), key(1), 3.0))
    catalog.close()
    record = told(filled, "stats")
    assert (record["entries"], record["hits"], record["saved"]) == (3, 3, 2 * 252.0 + 0.5)
    assert (record["programs"], record["lookups"], record["recipes"], record["jobs"]) == (2, 3, 1, 1)
    assert record["share_used"] == record["total"] / record["budget"]["size"]
    assert record["free_on_disk"] > 0
    text = good(filled, "stats")
    for piece in ("3 entries", "20 GB", "saved 8 min 24 s", "3 of 2 programs", "free", str(filled)):
        assert piece in text


def test_stats_of_nothing(home):
    assert "nothing is kept there yet" in good(home, "stats")
    assert not (home / INDEX).exists()


def test_stats_without_limits(filled, monkeypatch):
    monkeypatch.setenv("NECTAR_BUDGET", "0")
    assert told(filled, "stats")["share_used"] is None
    assert "none" in good(filled, "stats")


def test_stats_tell_what_nectar_itself_costs(home):
    home.mkdir(exist_ok=True)
    steering = Steering(0.02, 0.05, home / "programs", program="main.py", age=100.0)
    site = steering.sites.named("f")
    steering.looked(site, 2.0, 0.5, 2.0)
    steering.ledger.save(2.0)
    steering.ledger.spend("in the background", 0.25)
    steering.ran_alone(site, 0.0001)
    steering.remember()
    steering.remember()  # counts nothing twice
    said = good(home, "stats")
    assert "that programs take without it: 500 ms looking up, 250 ms in the background" in said
    assert "alone      1 query or call, quicker than looking for them\n" in said
    assert told(home, "stats")["overhead"]["looking up"] == 0.5
    steering.ran_alone(steering.sites.named("g"), 10.0)
    steering.remember()
    assert "1 query or call, quicker than looking for them; 1 more to keep within the setting overhead" in good(
        home, "stats"
    )
