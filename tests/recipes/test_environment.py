"""What is missing makes a rebuild impossible; what differs needs the word of a person."""

import importlib.metadata

import msgspec
import pytest

from nectar.recipes.environment import differences, environment_here
from nectar.recipes.recipe import Package, Proof, Recipe

HERE = environment_here("Polars", "2.1.0", "/somewhere")
PROOF = Proof(b"", b"", ())


def recipe(packages=(), **changed):
    then = msgspec.structs.replace(HERE, **changed)
    return Recipe("polars", b"k", b"p", "a thing", 1.0, then, PROOF, packages=tuple(packages))


def toolz(version=None):
    return Package("toolz", version or importlib.metadata.version("toolz"), "toolz.functoolz", "clean (a.py:3)")


def test_the_same_environment_has_no_differences():
    found = differences(recipe([toolz()]), HERE, ())
    assert (found.missing, found.changed) == ((), ())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"engine_version": "1.0.0"}, "Polars 1.0.0, and this is Polars 2.1.0"),
        ({"python": "3.9"}, "Python 3.9"),
        ({"implementation": "pypy"}, "pypy"),
        ({"scheme": 99}, "scheme 99"),
        ({"system": "plan9"}, "plan9"),
        ({"machine": "vax"}, "vax"),
    ],
)
def test_each_difference_is_a_sentence(changed, said):
    found = differences(recipe(**changed), HERE, ())
    assert found.missing == ()
    (sentence,) = found.changed
    assert said in sentence


def test_where_the_engine_lies_is_no_difference():
    assert differences(recipe(engine_folder="/elsewhere"), HERE, ()).changed == ()


def test_another_version_of_a_package_is_told():
    (sentence,) = differences(recipe([toolz("0.1")]), HERE, ()).changed
    assert sentence.startswith("clean (a.py:3) needs toolz 0.1, and ")


def test_a_package_that_is_not_installed_is_missing():
    gone = Package("no-such-thing", "3.2", "no_such_thing.inner", "clean (a.py:3)")
    found = differences(recipe([gone]), HERE, ())
    assert found.changed == ()
    (sentence,) = found.missing
    assert sentence == (
        "clean (a.py:3) needs no-such-thing 3.2, which is not installed: pip install 'no-such-thing==3.2'"
    )


def test_any_version_will_do_where_none_is_named():
    assert differences(recipe([Package("toolz", "", "toolz", "it")]), HERE, ()).changed == ()


def test_bytecode_of_another_python_cannot_be_run_whatever_is_allowed():
    by_value = Package("cloudpickle", "", "cloudpickle", "it")
    found = differences(recipe([by_value], python="3.9"), HERE, ())
    assert found.changed == ()
    assert "bytecode" in found.missing[0]
