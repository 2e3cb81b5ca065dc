"""Homes: private whatever the umask, tightened if they were loose, refused if others may write to them."""

import os
import stat
from pathlib import Path

import pytest
from tests.trust.conftest import ALICE, BOB, MALLORY, MARK_OF_ANOTHER, TEAM, give_by_list

from nectar.catalog.embedded import open_catalog
from nectar.errors import CatalogFailure, SettingError, UntrustedError, UserError
from nectar.settings import Settings
from nectar.store.problem import Damaged
from nectar.trust import home as homes
from nectar.trust.contents import INDEX
from nectar.trust.home import access_of, opened, share
from nectar.trust.places import has_list

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def filled(home, **settings):
    """A catalog with one result in files, opened in a home and closed."""
    catalog = open_catalog(Settings(home=home, reserve=0, inline=0, **settings))
    catalog.keep(b"k" * 32, b"p" * 32, list(range(5000)), seconds=9.0)
    catalog.close()


def modes(home):
    return {mode(path) for path in home.rglob("*") if path.is_dir()}, {
        mode(path) for path in home.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_a_home_is_private_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        filled(tmp_path / "missing" / "home")
    finally:
        os.umask(before)
    home = tmp_path / "missing" / "home"
    assert (mode(home.parent), mode(home)) == (0o700, 0o700)
    assert modes(home) == ({0o700}, {0o600})


@pytest.mark.parametrize("umask", [0o002, 0o022])
def test_a_store_elsewhere_is_private_too(tmp_path, umask):
    before = os.umask(umask)
    try:
        filled(tmp_path / "home", store=str(tmp_path / "store"))
    finally:
        os.umask(before)
    assert mode(tmp_path / "store") == 0o700
    assert modes(tmp_path / "store") == ({0o700}, {0o600})


def loosened(home, files, folders):
    """As earlier versions left a home, with some umask."""
    for path in (home, *home.rglob("*")):
        path.chmod(folders if path.is_dir() else files)


def test_a_home_that_others_could_look_into_goes_on_working_and_is_private_then(tmp_path):
    home = tmp_path / "home"
    filled(home)
    loosened(home, 0o644, 0o755)
    catalog = open_catalog(Settings(home=home))
    (entry,) = catalog.index.lookup([b"k" * 32]).values()
    with catalog.open(entry) as result:
        assert result.to_object() == list(range(5000))
    catalog.close()
    assert mode(home) == mode(home / "results") == mode(home / "results" / "data") == 0o700
    assert {mode(path) for path in home.iterdir() if path.is_file()} == {0o600}


def test_a_home_that_others_could_write_to_goes_on_working_if_all_in_it_is_of_this_user(tmp_path):
    home = tmp_path / "home"
    filled(home)
    loosened(home, 0o666, 0o777)
    assert (home / f"{INDEX}-spare").exists()
    (home / INDEX).chmod(0o644)  # SQLite gives nobody else the right to write, whatever the umask
    (home / MARK_OF_ANOTHER).write_text("whatever they wanted")
    (home / "verified-results.txt").write_text("of the user")
    catalog = open_catalog(Settings(home=home))
    assert len(catalog.index.lookup([b"k" * 32])) == 1
    catalog.close()
    assert mode(home) == 0o700
    assert not (home / MARK_OF_ANOTHER).exists(), "others could have written it"
    assert (home / "verified-results.txt").exists(), "nothing is read from it"


def test_what_others_could_have_changed_once_is_looked_at_before_its_use(tmp_path):
    home = tmp_path / "home"
    filled(home)
    loosened(home, 0o666, 0o777)
    (home / INDEX).chmod(0o644)
    (path,) = home.rglob("object.pickle")
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\0" + content[101:])  # neither its length nor its ends tell
    for _ in range(2):
        catalog = open_catalog(Settings(home=home, verify="length"))
        for entry in catalog.index.lookup([b"k" * 32]).values():
            assert isinstance(catalog.open(entry), Damaged)
        catalog.close()
    assert mode(home) == 0o700


def test_a_home_that_others_could_only_look_into_is_not_doubted(tmp_path):
    home = tmp_path / "home"
    filled(home)
    loosened(home, 0o644, 0o755)
    assert opened(home).open_until == 0.0


def test_what_is_put_there_at_the_last_moment_is_seen(place, monkeypatch):
    """Somebody sees that a home is about to become private, and puts one more file there."""
    home = place / "home"
    filled(home)
    loosened(home, 0o644, 0o777)
    chmod = os.chmod

    def late(path, mode):
        monkeypatch.undo()
        (home / f"{INDEX}-journal").write_text("")
        os.chown(home / f"{INDEX}-journal", MALLORY, MALLORY)
        chmod(path, mode)

    monkeypatch.setattr(os, "chmod", late)
    for _ in range(2):
        with pytest.raises(UntrustedError, match="may not be yours: it belongs"):
            opened(home)
    assert mode(home) == 0o777, "the next who comes sees that it was open"


@pytest.mark.parametrize("name", [INDEX, f"{INDEX}-wal", "programs", MARK_OF_ANOTHER])
def test_a_home_where_somebody_has_put_something_is_refused(place, name):
    home = place / "home"
    filled(home)
    loosened(home, 0o644, 0o777)
    path = home / name
    if not path.exists():
        path.write_text("")
    os.chown(path, MALLORY, MALLORY)
    with pytest.raises(UntrustedError, match=f"everybody could write there, and {path} may not be yours: it belongs"):
        opened(home)
    assert mode(home) == 0o777, "nothing is touched"


@pytest.mark.parametrize("how", ["link", "mode", "name"])
def test_a_home_whose_catalog_others_may_have_changed_is_refused(tmp_path, how):
    home = tmp_path / "home"
    filled(home)
    home.chmod(0o777)
    if how == "link":
        (home / INDEX).rename(tmp_path / "elsewhere.db")
        (home / INDEX).symlink_to(tmp_path / "elsewhere.db")
    elif how == "name":
        os.link(home / INDEX, tmp_path / "elsewhere.db")
    else:
        (home / INDEX).chmod(0o666)
    said = {"link": "no plain file", "mode": "everybody may write to it", "name": "another name elsewhere"}[how]
    with pytest.raises(UntrustedError, match=said):
        opened(home)


def test_a_folder_with_other_things_in_it_keeps_its_mode_and_what_is_kept_is_private(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "report.txt").write_text("for everybody")
    filled(tmp_path)
    assert mode(tmp_path) == 0o755
    assert mode(tmp_path / "report.txt") == 0o644
    assert mode(tmp_path / "results") == 0o700
    assert mode(tmp_path / INDEX) == 0o600


@pytest.mark.parametrize("loose", [0o777, 0o1777])
def test_a_folder_with_other_things_in_it_that_others_write_to_is_no_home(tmp_path, loose):
    (tmp_path / "file").write_text("")
    tmp_path.chmod(loose)
    with pytest.raises(UntrustedError, match=f"everybody may write to {tmp_path}. Use another folder"):
        opened(tmp_path)
    assert mode(tmp_path) == loose


def test_a_home_below_a_folder_that_others_write_to_is_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UntrustedError, match="everybody may write to .*open"):
        opened(tmp_path / "open" / "home")
    assert list((tmp_path / "open").iterdir()) == [], "nothing is made there"


@pytest.mark.parametrize("what", ["results", "results/data", "results/staging", "results/trash", "store"])
def test_results_are_not_read_from_a_folder_that_others_write_to(tmp_path, what):
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "home"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    settings = Settings(home=home, store=str(elsewhere) if what == "store" else "")
    if what != "store":
        (home / what).parent.mkdir(parents=True)
        (home / what).symlink_to(elsewhere)
    with pytest.raises(UntrustedError, match=f"everybody may write to {elsewhere}"):
        open_catalog(settings)
    elsewhere.chmod(0o755)
    open_catalog(settings).close()


def test_a_home_of_another_user_is_refused_also_for_reading_and_for_root(of):
    home = of(ALICE, "home")
    for reading in (True, False):
        with pytest.raises(UntrustedError, match=f"belongs to user {ALICE}"):
            opened(home, reading=reading)
    assert access_of(home) is None


def test_a_home_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "home"):
        with pytest.raises(CatalogFailure, match="cannot be"):
            opened(path)


def test_reading_makes_nothing(tmp_path):
    assert opened(tmp_path / "home", reading=True).writable is False
    assert list(tmp_path.iterdir()) == []
    assert access_of(tmp_path / "home") is None


@pytest.mark.parametrize("step", ["distrust", "_shared_access"])
def test_a_home_that_is_taken_away_while_it_is_judged_is_refused(of, place, monkeypatch, step):
    """Somebody was faster to make it, and lets only those find it who use it: not those who look whose it is."""
    of(0, "tmp", 0o1777)
    home = place / "tmp" / "home"
    home.mkdir()
    os.chown(home, MALLORY, MALLORY)
    plain = getattr(homes, step)

    def away(*arguments, **named):
        home.rename(place / "tmp" / "away")
        try:
            return plain(*arguments, **named)
        finally:
            (place / "tmp" / "away").rename(home)

    monkeypatch.setattr(homes, step, away)
    for reading in (True, False):
        with pytest.raises(UntrustedError, match="is not there any more|belongs to user"):
            opened(home, reading=reading)


def test_the_home_that_is_judged_is_the_one_that_was_looked_into(of, place, monkeypatch):
    of(0, "tmp", 0o1777)
    home = place / "tmp" / "home"
    opened(home)
    plain = homes.distrust

    def exchanged(*arguments, **named):
        home.rename(place / "tmp" / "away")
        home.mkdir(mode=0o700)
        return plain(*arguments, **named)

    monkeypatch.setattr(homes, "distrust", exchanged)
    with pytest.raises(UntrustedError, match="was exchanged while it was looked at"):
        opened(home)


def test_no_folder_is_made_behind_a_link_that_somebody_puts_on_the_way(of, place, monkeypatch):
    """Where everybody may make something, it comes between the look and what is made."""
    of(0, "tmp", 0o1777)
    mine, way = of(0, "mine", 0o700), place / "tmp" / "way"
    plain = homes.distrust

    def planted(*arguments, **named):
        reason = plain(*arguments, **named)
        if not os.path.lexists(way):
            way.symlink_to(mine)
            os.lchown(way, MALLORY, MALLORY)
        return reason

    monkeypatch.setattr(homes, "distrust", planted)
    with pytest.raises(UntrustedError, match=f"{way} belongs to user {MALLORY}"):
        opened(way / "home")
    assert list(mine.iterdir()) == []


def test_a_home_to_be_read_that_others_could_make_is_refused(of, place):
    """A program that may only read opens the catalog later than it looks for it."""
    of(0, "tmp", 0o1777)
    with pytest.raises(UntrustedError, match="everybody may write to .*tmp"):
        opened(place / "tmp" / "home", reading=True)
    opened(place / "home", reading=True)


# shared


def test_lists_of_rights_go_when_a_home_is_shared(place):
    """Project folders have lists, and hand them on to what is made in them: with the group, others would be let in."""
    give_by_list(place, "default", MALLORY)
    home = place / "home"
    filled(home)
    give_by_list(home / "results" / "data", "default", MALLORY)
    share(home, TEAM, writing=True)
    catalog = open_catalog(Settings(home=home, reserve=0, inline=0))
    catalog.keep(b"l" * 32, b"p" * 32, list(range(5000)), seconds=9.0)
    catalog.close()
    assert [path for path in (home, *home.rglob("*")) if has_list(path)] == []


@pytest.mark.parametrize("kind", ["default", "access"])
@pytest.mark.parametrize("writing", [True, False])
def test_a_shared_home_with_a_list_of_rights_is_refused(place, kind, writing):
    home = place / "home"
    share(home, TEAM, writing=writing)
    give_by_list(home, kind, MALLORY)
    with pytest.raises(UntrustedError, match="list of rights .see getfacl"):
        opened(home)


def test_a_home_whose_mark_is_changed_while_it_is_judged_is_refused(place, monkeypatch):
    home = place / "home"
    share(home, TEAM, writing=True)
    plain = homes.distrust

    def unshared(*arguments, **named):
        (home / "shared.json").unlink()
        return plain(*arguments, **named)

    monkeypatch.setattr(homes, "distrust", unshared)
    with pytest.raises(UntrustedError, match="was changed meanwhile"):
        opened(home)


def test_sharing_gives_the_group_everything_that_is_there_and_will_be(place):
    home = place / "home"
    filled(home)
    share(home, TEAM, writing=True)
    catalog = open_catalog(Settings(home=home, reserve=0, inline=0))
    catalog.keep(b"l" * 32, b"p" * 32, list(range(5000)), seconds=9.0)
    catalog.close()
    paths = [home, *home.rglob("*")]
    assert {path.stat().st_gid for path in paths} == {TEAM}
    assert {mode(path) for path in paths if path.is_dir()} == {0o2770}
    assert {path.name: mode(path) for path in paths if path.is_file() and mode(path) != 0o660} == {"shared.json": 0o640}


def test_who_may_only_read_gets_no_right_to_write(place):
    home = place / "home"
    filled(home)
    share(home, TEAM, writing=False)
    assert modes(home) == ({0o2750}, {0o640})
    share(home, TEAM, writing=True)
    assert opened(home).access.writing, "the owner has changed their mind"


def test_a_mark_alone_shares_nothing(of):
    home = of(BOB, "home", 0o700)
    (home / "shared.json").write_text(f'{{"group": {os.getegid()}, "writing": true}}')
    os.chown(home / "shared.json", BOB, BOB)
    with pytest.raises(UntrustedError, match=f"belongs to user {BOB}"):
        opened(home)


@pytest.mark.parametrize("said", ["", "[]", "{}", '{"group": "x", "writing": 1}', "[" * 100_000, "link", "pipe"])
def test_a_mark_that_means_nothing_shares_nothing(tmp_path, said):
    home = tmp_path / "home"
    opened(home)
    mark = home / "shared.json"
    if said == "link":
        mark.symlink_to("/dev/zero")
    elif said == "pipe":
        os.mkfifo(mark)
    else:
        mark.write_text(said)
    assert opened(home).access.group is None


def test_a_mark_that_a_member_has_put_there_does_not_count(place):
    home = place / "home"
    share(home, TEAM, writing=True)
    os.chown(home / "shared.json", ALICE, TEAM)
    with pytest.raises(UntrustedError, match=f"the group {TEAM} may write to"):
        opened(home)


def test_a_shared_home_that_waits_where_everybody_may_make_folders_is_nobodys_colleague(place, of):
    """Somebody of the same large group makes a home under the name that another will use: to name it is no joining."""
    of(0, "tmp", 0o1777)
    home = place / "tmp" / "home"
    share(home, os.getegid(), writing=True)
    assert opened(home).access.group == os.getegid()
    for path in (home, home / "shared.json"):
        os.chown(path, MALLORY, os.getegid())
    with pytest.raises(UntrustedError, match=f"belongs to user {MALLORY}, and everybody may make something in"):
        opened(home)


def test_nobody_shares_what_belongs_to_another_user(of):
    with pytest.raises(UserError, match="only they can share it"):
        share(of(ALICE, "home"), TEAM, writing=True)


def test_a_home_below_a_folder_that_others_write_to_cannot_be_shared(place):
    (place / "open").mkdir()
    (place / "open").chmod(0o777)
    with pytest.raises(UserError, match="others would decide"):
        share(Path(place / "open" / "home"), TEAM, writing=True)


@pytest.mark.parametrize("url", ["FILE:///tmp/x", "nobody-knows://x"])
def test_a_store_of_a_kind_that_nobody_knows_is_a_setting_that_means_nothing(tmp_path, url):
    pytest.importorskip("fsspec")
    with pytest.raises(SettingError, match="what kind of store"):
        open_catalog(Settings(home=tmp_path / "home", store=url))


@pytest.mark.parametrize(
    "url",
    ["simplecache::file://{}", "dir::file://{}", "filecache::local://{}", "simplecache::{}", "dir::simplecache::file://{}",
     "zip::file://{}/x.zip", "file:{}"],
)  # fmt: skip
def test_a_url_that_ends_at_files_of_this_machine_is_no_way_around_who_owns_them(tmp_path, url):
    pytest.importorskip("fsspec")
    with pytest.raises(SettingError, match="what kind of store"):
        open_catalog(Settings(home=tmp_path / "home", store=url.format(tmp_path / "store")))
    assert not (tmp_path / "store").exists()


def test_a_chain_that_ends_elsewhere_and_a_path_with_colons_are_stores(tmp_path):
    pytest.importorskip("fsspec")
    filled(tmp_path / "home", store="dir::memory://somewhere")
    filled(tmp_path / "another", store=str(tmp_path / "a::b"))
    assert list((tmp_path / "a::b").rglob("object.pickle"))
