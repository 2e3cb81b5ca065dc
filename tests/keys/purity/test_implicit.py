"""Captured objects that are changed without a call to be seen: by subscripts, attributes, operators, and by libraries."""

# Many small functions, each as short as people write them.
# ruff: noqa: B018, B024, C416, C417, D101, E501, E701, E704, PLC3002, RUF005, SIM

import collections
import contextlib
import functools
import heapq
import itertools
import json
import operator

import numpy as np
import pytest

import nectar
from nectar.errors import UncacheableError, UnencodableError
from nectar.keys.call import call_of


class Memo(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


class Ticket:
    def __init__(self):
        self.n = 0
        self.log = []

    @property
    def next(self):
        self.n += 1
        return self.n

    @functools.cached_property
    def counted(self):
        self.n += 1
        return self.n

    def __getitem__(self, key):
        self.n += 1
        return self.n

    def __enter__(self):
        self.n += 1
        return self

    def __exit__(self, *error):
        return False

    def __str__(self):
        self.log.append(1)
        return "1"

    def __format__(self, spec):
        self.n += 1
        return "x"

    def __add__(self, other):
        self.n += 1
        return self.n

    def __radd__(self, other):
        self.n += 1
        return self.n

    def __lt__(self, other):
        self.n += 1
        return True

    def __eq__(self, other):
        self.n += 1
        return True

    def __hash__(self):
        self.n += 1
        return 1

    def __iter__(self):
        self.n += 1
        return iter([1])

    def __len__(self):
        self.n += 1
        return 1

    def __bool__(self):
        self.n += 1
        return True

    def __contains__(self, x):
        self.n += 1
        return True

    def __neg__(self):
        self.n += 1
        return 1

    def __call__(self, *x):
        self.n += 1
        return 1

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__["n"] = 3
        return 1

    def inc(self, *x):
        self.n += 1
        return 1

    def total(self):
        return self[0]

    def shown(self):
        return f"{self}"

    def __index__(self):
        self.n += 1
        return 1


class Desc:
    def __init__(self):
        self.n = 0

    def __get__(self, o, t):
        self.n += 1
        return 1


class Holder:
    d = Desc()

    def __init__(self):
        self.t = Ticket()


class Count:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        return self.n


T, M, H, W, SEEN, IT, N = Ticket(), Memo(), Holder(), collections.defaultdict(int), [], iter([1, 2, 3]), np.zeros(3)
TS = [Ticket()]
TD = {"a": Ticket()}
C = Count()
APPEND = operator.methodcaller("append", 1)
P = functools.partial(list.append, SEEN)
NEXT = operator.attrgetter("next")
ITEM = operator.itemgetter("k")
WW = collections.defaultdict(list)


def helper(t):
    return t[0]


def add_to(acc, x):
    acc.append(x)
    return acc


def bump(t):
    t.n += 1


# fmt: off
def changes_by_defaultdict_len(w):
    W[w]
    return len(W)
def changes_by_missing(w): return M[w]
def changes_by_property(w): return T.next
def changes_by_cached(w): return T.counted
def changes_by_item(w): return T[w]
def changes_by_with(w):
    with T:
        return 1
def changes_by_fstring(w): return f"{T}"
def changes_by_str(w): return str(T)
def changes_by_print(w): print(T)
def changes_by_percent(w): return "%s" % T
def changes_by_format(w): return "{}".format(T)
def changes_by_add(w): return T + w
def changes_by_radd(w): return w + T
def changes_by_lt(w): return T < w
def changes_by_gt(w): return w > T
def changes_by_eq(w): return w == T
def changes_by_hash(w): return {T: 1}
def changes_by_in_set(w): return T in {1, 2}
def changes_by_iter(w): return [x for x in T]
def changes_by_for(w):
    for x in T:
        return x
def changes_by_unpack(w):
    (a,) = T
    return a
def changes_by_star(w): return [*T]
def changes_by_len(w): return len(T)
def changes_by_bool(w): return 1 if T else 2
def changes_by_not(w): return not T
def changes_by_and(w): return T and w
def changes_by_contains(w): return w in T
def changes_by_neg(w): return -T
def changes_by_call(w): return T(w)
def changes_by_getattr(w): return T.anything
def changes_by_getattr2(w): return getattr(T, "next")
def changes_by_method_value(w): return list(map(T.inc, w))
def changes_by_sorted(w): return sorted(w, key=T.inc)
def changes_by_sorted_obj(w): return sorted([T, T])
def changes_by_max(w): return max(w, key=T)
def changes_by_helper(w): return helper(T)
def changes_by_method(w): return T.total()
def changes_by_shown(w): return T.shown()
def changes_by_descriptor(w): return H.d
def changes_by_nested(w): return H.t.next
def changes_by_nested_item(w): return H.t[w]
def changes_by_in_list(w): return TS[0].next
def changes_by_in_list_for(w):
    for t in TS:
        t.next
def changes_by_in_dict(w): return TD["a"][w]
def changes_by_in_dict_bump(w):
    for t in TD.values():
        bump(t)
def changes_by_iterator(w): return next(IT)
def changes_by_iterator_for(w):
    for x in IT:
        return x
def changes_by_list_iterator(w): return list(IT)
def changes_by_zip_iterator(w): return dict(zip(w, IT))
def changes_by_own_iterator(w):
    for x in C:
        return x
def changes_by_islice(w): return list(itertools.islice(C, 3))
def changes_by_vars(w): vars(T)["n"] += 1
def changes_by_dict(w): T.__dict__["n"] += 1
def changes_by_vars_update(w): vars(T).update(n=1)
def changes_by_add_at(w): np.add.at(N, [0], 1)
def changes_by_copyto(w): np.copyto(N, 1)
def changes_by_out(w): np.add(1, 2, out=N)
def changes_by_put(w): N.put([0], [1])
def changes_by_fill(w): N.fill(1)
def changes_by_slice(w): N[:] = 1
def changes_by_augment(w):
    global N
    N += 1
def changes_by_methodcaller(w): APPEND(SEEN)
def changes_by_methodcaller_here(w): operator.methodcaller("append", 1)(SEEN)
def changes_by_methodcaller_map(w): return list(map(operator.methodcaller("inc"), TS))
def changes_by_attrgetter(w): return NEXT(T)
def changes_by_attrgetter_here(w): return operator.attrgetter("next")(T)
def changes_by_itemgetter(w): return ITEM(W)
def changes_by_itemgetter_here(w): return operator.itemgetter(w)(T)
def changes_by_partial(w): P(1)
def changes_by_partial_here(w): functools.partial(list.append, SEEN)(1)
def changes_by_partial_map(w): return list(map(functools.partial(list.append, SEEN), w))
def changes_by_reduce(w): return functools.reduce(add_to, w, SEEN)
def changes_by_reduce2(w): return functools.reduce(operator.iadd, w, SEEN)
def changes_by_map(w): return list(map(SEEN.append, w))
def changes_by_map_unbound(w): return list(map(list.append, [SEEN], w))
def changes_by_for_each(w): list(map(bump, TS))
def changes_by_filter(w): return list(filter(SEEN.append, w))
def changes_by_sorted_list(w): SEEN.sort()
def changes_by_operator(w): operator.setitem(TD, "b", w)
def changes_by_heap(w): heapq.heappush(SEEN, w)
def changes_by_setattr(w): setattr(T, "n", w)
def changes_by_default(w, seen=[]):
    seen.append(w)
    return len(seen)
def changes_by_default_dict(w, seen=collections.defaultdict(int)): return seen[w]
def changes_by_enumerate(w):
    for i, t in enumerate(TS):
        t.n = i
def changes_by_reversed(w):
    for t in reversed(TS):
        t.n = 1
def changes_by_zip(w):
    for t, x in zip(TS, w):
        t.n = x
def changes_by_sorted_change(w):
    for t in sorted(TS, key=id):
        t.n = 1
def changes_by_list_change(w):
    for t in list(TS):
        t.n = 1
def changes_by_comp(w): return [t.next for t in TS]
def changes_by_genexp(w): return sum(t.next for t in TS)
def changes_by_inner(w):
    def inner():
        return T.next

    return inner()
def changes_by_exitstack(w):
    with contextlib.ExitStack() as stack:
        stack.enter_context(T)
def changes_by_match(w):
    match T:
        case Ticket(next=n):
            return n
def changes_by_walrus(w): return (t := T).next and t
def changes_by_alias(w):
    t = T
    return t[0]
def changes_by_or(w):
    t = w or T
    return t[0]
def changes_by_ternary(w):
    t = T if w else None
    return t.next
def changes_by_slice_get(w): return T[1:2]
def changes_by_index(w): return [1, 2][T]
def changes_by_range(w): return list(range(T))
def changes_by_groups(w): return WW[w].append(1)
def changes_by_setdefault(w): return TD.setdefault(w, 1)
def changes_by_pop(w): return SEEN.pop() if SEEN else None
def changes_by_iadd_attr(w): T.n += 1
def changes_by_class_attr(w): Ticket.total_made = 1
def changes_by_fn_attr(w): changes_by_fn_attr.n = 1
def changes_by_aug_sub(w): TD["a"].n += 1
def changes_by_del(w): del T.n
def changes_by_bytes(w): return operator.index(T)
def changes_by_hash_set(w): return len({T, w})
def changes_by_tuple_key(w): return {(T, 1): 2}
def changes_by_json(w): return json.dumps(w, default=T.inc)
# fmt: on


CHANGING = [value for name, value in list(globals().items()) if name.startswith("changes_by_")]


@pytest.mark.parametrize("function", CHANGING, ids=lambda each: each.__name__)
def test_a_captured_object_is_changed(function):
    with pytest.raises((UncacheableError, UnencodableError), match="outlives the call|the global|every use moves on"):
        nectar.fingerprint(function)


def test_the_reason_names_the_function_the_line_and_the_method():
    with pytest.raises(UncacheableError) as refused:
        nectar.fingerprint(changes_by_property)
    line = changes_by_property.__code__.co_firstlineno
    said = [str(each) for each in refused.value.refusals]
    place = f"changes_by_property (test_implicit.py:{line})"
    assert said == [f"{place} uses Ticket.next, which changes a captured Ticket that outlives the call"]


def test_a_bound_method_in_a_partial_may_be_called():
    def noted(word, note):
        note(word)

    for note in (SEEN.append, T.inc, C.__next__):
        with pytest.raises(UncacheableError, match="which changes"):
            nectar.fingerprint(functools.partial(noted, note=note))


def test_a_bound_method_that_changes_its_object_is_refused():
    with pytest.raises(UncacheableError, match="which changes a captured Ticket"):
        nectar.fingerprint(T.inc)


def numbered(word):
    return W[word]


def numbered_in_a_loop(words):
    return {word: W[word] for word in words}


@pytest.mark.parametrize("function", [numbered, numbered_in_a_loop])
def test_looking_up_keys_in_a_captured_defaultdict_shows_nothing_by_itself(function):
    nectar.fingerprint(function)


def test_what_a_call_adds_to_a_captured_defaultdict_is_seen_afterwards():
    found = collections.defaultdict(list)

    def length(word):
        return len(found[word])

    before = call_of(length, {"word": "a"})
    assert not before.refusals
    length("a")
    assert call_of(length, {"word": "a"}).digest != before.digest
    length("a")


class Report:
    def __init__(self):
        self.rows = [1, 2]

    @functools.cached_property
    def total(self):
        return sum(self.rows)


def test_a_cached_property_that_is_filled_by_a_call_is_no_change():
    report = Report()

    def total(n):
        return report.total + n

    before = call_of(total, {"n": 1})
    total(1)
    assert call_of(total, {"n": 1}).digest == before.digest
    report.rows.append(3)  # what is remembered is out of date
    assert call_of(total, {"n": 1}).digest != before.digest
