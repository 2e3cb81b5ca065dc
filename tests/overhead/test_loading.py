"""What a first look loads, seen in a fresh interpreter: counts, because every program waits for it."""

import json
import subprocess
import sys

import pytest

from nectar.overhead.loading import loading
from nectar.overhead.steering import Steering

COUNTING = """
import dataclasses, sys
make, made = dataclasses._process_class, []

def counted(cls, *options):
    made.append(cls.__module__)
    return make(cls, *options)

dataclasses._process_class = counted
"""
LOOK = "import nectar.dialects.polars.collecting, nectar.catalog.embedded"
MEMO = "import nectar.dialects.python.memo, nectar.catalog.embedded"


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(("what", "most"), [(LOOK, 3), (MEMO, 9)])
def test_few_classes_are_made_by_running_texts(what, most):
    """A class of `dataclasses` takes half a millisecond to make, a struct a tenth of that."""
    made = printed(f"{COUNTING}{what}\nprint(*(each for each in made if each.startswith('nectar.')))")
    assert len(made) <= most, made


@pytest.mark.parametrize(("what", "most"), [(LOOK, 132), (MEMO, 193)])
def test_few_modules_are_loaded(what, most):
    loaded = printed(f"import sys\n{what}\nprint(*(each for each in sys.modules if each.startswith('nectar.')))")
    assert len(loaded) <= most, sorted(loaded)


# What only keeping, growing, remote and named inputs, rebuilding, explaining and watching need.
LATER = (
    "nectar.store.commit", "nectar.store.read", "nectar.store.formats", "nectar.store.remove", "nectar.store.remote",
    "nectar.store.inputs.growth", "nectar.store.inputs.remote", "nectar.store.inputs.stretches", "nectar.datasets",
    "nectar.catalog.handover", "nectar.catalog.holding", "nectar.recipes.recipe",
    "nectar.recipes.rebuild", "nectar.recipes.environment", "nectar.model.lineage", "nectar.observation",
    "nectar.keys.difference", "nectar.keys.trace", "nectar.keys.sources", "nectar.rewrite.cost",
    "nectar.rewrite.segments",
)  # fmt: skip


FOR_HITS = ("nectar.store.read", "nectar.store.formats")  # loaded with memo, so that forked processes need not


@pytest.mark.parametrize(("what", "but"), [(LOOK, ()), (MEMO, FOR_HITS)])
def test_what_is_only_needed_later_is_loaded_later(what, but):
    """What watches and keeps a call is loaded when one has to be computed: most are found."""
    loaded = printed(f"import sys\n{what}\nprint(*(each for each in sys.modules if each.startswith('nectar.')))")
    assert [each for each in loaded if each in LATER and each not in but] == []


def test_a_call_loads_nothing_of_the_standard_library_that_it_does_not_need():
    heavy = (
        "{'subprocess', 'zoneinfo', 'importlib.resources', 'pyarrow', 'numpy', 'polars', 'hashlib', 'fractions', "
        "'shutil', 'concurrent.futures', 'getpass'}"
    )
    assert printed(f"import sys\n{MEMO}\nprint(*{heavy}.intersection(sys.modules))") == []


def test_the_text_for_moments_is_not_compiled_before_it_is_asked_for():
    (asked,) = printed(f"{MEMO}\nfrom nectar.keys import moments\nprint(moments._for_now.cache_info().currsize)")
    assert asked == "0"


def test_an_account_knows_what_was_loaded_before_it_was_opened(tmp_path):
    script = (
        "import json, nectar\nnectar.enable(overhead='2%')\nfrom nectar.session import own_time\n"
        "first = own_time()\nnectar.enable(overhead='3%')\nprint(json.dumps([first, own_time()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"NECTAR_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    first, second = json.loads(done.stdout)
    assert first["starting"] > 0.0
    assert second == first, "it is counted once"


def test_what_a_block_loads_is_counted_and_known_to_later_processes():
    seconds = iter([0.0, 5.0, 5.02, 6.0, 6.0001])
    made = Steering(0.02, 0.05, timer=lambda: next(seconds), age=0.0)
    with loading(made, "nectar.what_looks"):
        pass
    assert round(made.ledger.spent["starting"], 3) == 0.02
    assert round(made.loading("nectar.what_looks"), 3) == 0.02
    with loading(made):
        pass
    assert round(made.ledger.spent["starting"], 3) == 0.02, "too little to notice"
    with loading(None):
        pass
