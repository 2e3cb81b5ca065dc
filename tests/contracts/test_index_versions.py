"""What every index remembers of functions and inputs, and how results are replaced."""

from tests.catalog.making import entry, key
from tests.contracts.test_index import NOW, counted, put

from nectar.catalog.state import Accept, Lapsed
from nectar.model.entry import Content, Lease, Length, Version


def test_versions_of_a_label_newest_first(index, another):
    trace = index.put_recipe([b"trace"])
    for at, program in enumerate((1, 2, 1)):
        index.add_version(Version("etl.clean", key(program), trace, NOW + at))
    index.add_version(Version("etl.other", key(3), trace, NOW))
    assert [version.program for version in another().versions("etl.clean")] == [key(2), key(1)]
    assert index.versions("nothing") == []


def test_contents_of_inputs_the_latest_counts(index, another):
    index.remember_contents({key(1): Content(b"a", False), key(2): Content(b"b", True)}, NOW)
    index.remember_contents({key(1): Content(b"c", True)}, NOW + 1)
    found = another().contents([key(1), key(2), key(3)])
    assert found == {key(1): Content(b"c", True), key(2): Content(b"b", True)}


def test_lengths_of_inputs_the_latest_of_each_place(index, another):
    long, short, read = (Length(key(1), 9, key(2), False, None), Length(key(1), 4, key(3), True, b"d"),
                         Length(key(1), 9, key(2), True, b"e"))  # fmt: skip
    elsewhere = Length(key(4), 1, key(5), True, None)
    index.remember_lengths([long, elsewhere], 10, NOW)
    index.remember_lengths([short], 10, NOW + 1)
    assert another().lengths([key(1), key(9)]) == {key(1): [short, long]}
    index.remember_lengths([read], 10, NOW + 2)
    assert index.lengths([key(1), key(4)]) == {key(1): [read, short], key(4): [elsewhere]}
    index.remember_lengths([read], 1, NOW + 3)
    assert index.lengths([key(1), key(4)]) == {key(1): [read], key(4): [elsewhere]}


def test_what_an_entry_is_about_comes_back(index, another):
    put(index, 1, about="etl.clean(day=3)")
    assert another().lookup([key(1)])[key(1)].about == "etl.clean(day=3)"


def test_a_new_result_takes_the_place_of_the_old(index):
    old = put(index, 1)
    index.pin(key(1), True)
    new = entry(1, location=f"{old.location}x", size=77)
    decision = index.add(new, "", 0.0, NOW + 5, replaces=True)
    assert isinstance(decision, Accept)
    standing = index.lookup([key(1)])[key(1)]
    assert (standing.location, standing.size, standing.pinned) == (new.location, 77, True)
    assert index.doomed() == [(old.location, old.size)]
    counted(index, NOW + 5)


def test_a_result_whose_writer_was_too_late_replaces_nothing(index):
    old = put(index, 1)
    decision = index.add(entry(1, location=f"{old.location}x"), "a lease nobody knows", 0.0, NOW, replaces=True)
    assert isinstance(decision, Lapsed)
    assert index.lookup([key(1)])[key(1)].location == old.location


def test_a_replaced_result_stays_on_disk_while_somebody_uses_it(index):
    old = put(index, 1)
    index.put_leases([Lease("mine", old.location, "me", NOW + 100)])
    index.add(entry(1, location=f"{old.location}x"), "", 0.0, NOW, replaces=True)
    assert index.doomed() == []
    index.drop_leases(["mine"])
    assert [location for location, _ in index.doomed()] == [old.location]
