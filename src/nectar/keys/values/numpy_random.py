"""Expanders of NumPy's random generators. Apart from the others: programs that draw no numbers do not import them."""

from __future__ import annotations

import numpy as np

from nectar.errors import UnencodableError
from nectar.keys.expansion import Expander, Expansion, WalkContext
from nectar.keys.values.bulk import Parts
from nectar.keys.values.numpy_values import add_array
from nectar.keys.values.place import HERE, placed


def expand_generator(value: np.random.Generator, walk: WalkContext) -> Expansion:
    """A random generator: the source of its bits, with its present state."""
    return Expansion("random generator", b"", (type(value), value.bit_generator), ("type", "bit_generator"))


def expand_random_state(value: np.random.RandomState, walk: WalkContext) -> Expansion:
    """A legacy random generator: its present state."""
    parts = Parts(type(value))
    _add_state(parts, value.get_state(legacy=False))
    return parts.expansion("random state")


def expand_bit_generator(value: np.random.BitGenerator, walk: WalkContext) -> Expansion:
    """A source of random bits: its present state, and the seeds that new ones spawned from it would get."""
    parts = Parts(type(value))
    _add_state(parts, value.state)
    parts.child(getattr(value, "seed_seq", None), "seed_seq")
    return parts.expansion("bit generator")


def expand_seed_sequence(value: np.random.SeedSequence, walk: WalkContext) -> Expansion:
    """A seed sequence: everything that decides what it spawns."""
    parts = Parts(type(value))
    state = {name: getattr(value, name) for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned", "pool")}
    _add_state(parts, state)
    return parts.expansion("seed sequence")


def _add_state(parts: Parts, state: object) -> None:
    """Adds a nest of dicts, sequences, arrays and numbers."""
    if isinstance(state, dict):
        parts.number(len(state))
        for name in sorted(state):
            parts.text(name)
            _add_state(parts, state[name])
    elif isinstance(state, (list, tuple)):
        parts.number(len(state))
        for part in state:
            _add_state(parts, part)
    elif isinstance(state, np.ndarray):
        add_array(parts, state)
    elif state is None or isinstance(state, (int, float, str)):
        parts.text(type(state).__name__, repr(state))
    else:
        raise UnencodableError("a random generator", HERE, f"it holds an unknown {type(state).__name__}")


def _bit_generators() -> list[type]:
    return [np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64]


EXPANDERS: dict[type, Expander] = placed(
    {
        np.random.Generator: expand_generator,
        np.random.RandomState: expand_random_state,
        np.random.SeedSequence: expand_seed_sequence,
        **dict.fromkeys(_bit_generators(), expand_bit_generator),
    }
)
