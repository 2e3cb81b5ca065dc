"""What a function gives is the same without Nectar, when it is computed, from memory, and in another process."""

import pathlib

import pytest
from tests.dialects.python.programs import Program

TEXT = (pathlib.Path(__file__).parent / "round_trips.py").read_text(encoding="utf-8")
NOT_KEPT = {
    "generator": "nothing but itself",
    "memory": "cannot be kept",
    "tagged": "does not give back Tagged",
    "forgetful": "does not give back Forgetful",
    "degrees": "does not give back Degrees",
    "shouting": "does not give back Shouting",
    "doubled": "does not give back Doubled",
    "error": "does not give back Broken",
    "frame_with_a_tag": "does not give back DataFrame",
    "old_frame_with_a_tag": "does not give back DataFrame",
    "subclass_with_a_tag": "does not give back Lazy",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What three processes have seen: one without Nectar, the first with it, and the second."""
    folder = tmp_path_factory.mktemp("round-trips")
    program = Program(folder / "program", folder / "home")
    program.write(round_trips=TEXT)
    return [program.told("round_trips", NECTAR_OFF="1"), *(program.told("round_trips") for _ in range(2))]


def test_all_see_the_same(runs):
    plain = {name: (found, again) for name, (found, again, *_) in runs[0].items()}
    for run in runs[1:]:
        assert {name: (found, again) for name, (found, again, *_) in run.items()} == plain


def test_what_comes_back_as_it_was_is_kept(runs):
    assert {name for name, (*_, outcome, _) in runs[2].items() if outcome != "reused"} == NOT_KEPT.keys()


@pytest.mark.parametrize("name", sorted(NOT_KEPT))
def test_what_does_not_is_not_kept_and_says_why(runs, name):
    assert NOT_KEPT[name] in runs[2][name][3]
