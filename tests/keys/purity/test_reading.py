"""Readings are excused only where it is certain that they are about what a parameter leads to."""

import nectar
from nectar.keys.outcome import outcome_of
from nectar.model.refusal import ITEM, Excuse

OTHER = object()


def make():
    return OTHER


def load(path):
    return open(path).read()


HELD = {"load": load}


def excuses(function):
    return [refusal.excuse for refusal in outcome_of(function).refusals]


def test_what_a_parameter_leads_to_is_excused():
    def directly(file):
        return open(file).read()

    def by_path(file):
        with open(file.path, "rb") as content:
            return content.read()

    def by_item(files):
        return open(files["a"].path, mode="r").read()

    def in_a_loop(files):
        found = []
        for file in files:
            found.append(open(file.path).read())
        return found

    def in_a_comprehension(files):
        return {file.name: open(file.path).read() for file in files}

    def in_a_comprehension_over_others(file, numbers):
        return [open(file.path).read() for number in numbers]

    def in_an_inner_function(file):
        def read():
            return open(file.path).read()

        return read()

    def through_a_helper(file):
        return load(file.path)

    def through_a_keyword(file):
        return load(path=file.path)

    def of_an_attribute(self):
        return open(self.file.path).read()

    assert excuses(directly) == [Excuse("file", ())]
    for function in (
        by_path,
        in_a_comprehension_over_others,
        in_an_inner_function,
        through_a_helper,
        through_a_keyword,
    ):
        assert excuses(function) == [Excuse("file", ("path",))], function
    for function in (by_item, in_a_loop, in_a_comprehension):
        assert excuses(function) == [Excuse("files", (ITEM, "path"))], function
    assert excuses(of_an_attribute) == [Excuse("self", ("file", "path"))]


def test_what_may_come_from_elsewhere_is_not():
    def another_file_perhaps(file, other):
        if other:
            file = make()
        return open(file.path).read()

    def another_file_by_an_inner_function(file):
        def change():
            nonlocal file
            file = make()

        change()
        return [open(file.path).read() for _ in (1,)]

    def a_path_beside_it(file):
        return open(file.path + ".index").read()

    def a_path_beside_it_through_a_helper(file):
        return load("x" + file.path)

    def told_where_to_write(file, mode):
        with open(file.path, mode) as content:
            content.write("x")

    def writing(file):
        with open(file.path, "w") as content:
            content.write("x")

    def the_reader_itself_goes_elsewhere(files):
        return list(map(open, files))

    def of_a_lambda(files):
        return list(map(lambda file: open(file.path).read(), files))

    for function in list(locals().values()):
        found = excuses(function)
        assert found, function
        assert all(excuse is None for excuse in found), function


def test_one_way_that_is_fine_does_not_excuse_another():
    def as_a_value_too(file):
        return load(file.path), list(map(load, ["/etc/hostname"]))

    def through_a_container_too(file):
        return load(file.path) + HELD["load"]("/etc/hostname")

    def recursive(file, depth):
        return open(file.path).read() if depth == 0 else recursive(make(), depth - 1)

    for function in (as_a_value_too, through_a_container_too, recursive):
        assert None in excuses(function), function


def test_a_helper_people_vouch_for_needs_no_excuse():
    @nectar.pure
    def trusted(path):
        return open(path).read()

    def calling(file):
        return trusted("x" + file)

    assert excuses(calling) == []
