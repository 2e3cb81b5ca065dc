"""What native functions of libraries are taken to do, by their names and the names of their parameters."""

import pytest

from nectar.keys.purity import guesses
from nectar.keys.purity.deny import Condition


class Native:
    """Stands for a function of a compiled library, which has a docstring and no signature."""

    __module__ = "nt_native"

    def __init__(self, name, doc=""):
        self.__name__, self.__doc__ = name, doc


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setattr(guesses, "is_native", lambda value: isinstance(value, Native))


WRITER = """
write( (Mol)mol, (Params)params) -> str :

write( (Mol)mol [, (bool)tidy=True [, (bool)doRandom=False]]) -> str :
"""


def test_a_parameter_that_asks_for_random_numbers_makes_a_call_without_it_fine():
    assert guesses.guess(Native("write", WRITER)) == ("random", Condition(2, "doRandom", given=False))


@pytest.mark.parametrize("name", ["MolToRandomText", "add_noise", "shuffled"])
def test_a_name_that_says_random_is_enough(name):
    assert guesses.guess(Native(name)) == ("random", None)


@pytest.mark.parametrize("doc", ["", "write(mol, tidy=True) -> str", "Writes at random.", "read(doRandom=True) -> str"])
def test_other_words_say_nothing(doc):
    assert guesses.guess(Native("write", doc)) is None


@pytest.mark.parametrize(
    "name", ["generate_key", "generate_private_key", "GenerateKeyPair", "gen_salt", "create_token"]
)
def test_keys_that_are_made_are_other_ones_each_time(name):
    assert guesses.guess(Native(name)) == ("random", None)


@pytest.mark.parametrize(
    "name", ["generate", "derive_key", "key_of", "load_private_key", "make_table", "generate_text"]
)
def test_other_things_that_are_made_are_not(name):
    assert guesses.guess(Native(name)) is None
