"""Nothing of a plan is left out of its key: each field of the protocol is changed in turn, and the key with it."""

from dataclasses import replace

import pytest

pytest.importorskip("pyspark.sql.connect.session", reason="Spark is not installed: make test-sail")
pytest.importorskip("sqlglot", reason="sqlglot is not installed: make test-sail")

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.connect.proto import relations_pb2
from pyspark.sql.types import LongType
from tests.dialects.spark.mutations import (
    LEFT_OUT,
    ONE_VALUE,
    REFUSED,
    Samples,
    attribute,
    changes,
    inner_plans,
    name_of,
    numbers,
)

from nectar.dialects.spark import functions, kinds
from nectar.dialects.spark.keying import keyed
from nectar.dialects.spark.relations import registration_of, steps_of
from nectar.dialects.spark.scope import Scope, View
from nectar.errors import NectarError

SMALL = ["project", "aggregate", "join", "read", "sql", "set_op"], ["literal", "cast", "window", "unresolved_function"]


def pickled(function):
    command = CloudPickleSerializer().dumps((function, LongType()))
    functions._remember(command, replace(functions._described(function), command=command))
    return command


@pytest.fixture
def samples(log):
    return Samples(str(log), (pickled(lambda n: n + 1), pickled(lambda n: n + 2)))


@pytest.fixture
def key(enabled, log, tmp_path, monkeypatch):
    """The key of a plan, or why it is refused."""
    monkeypatch.chdir(tmp_path)
    scope = Scope()
    for number, name in enumerate("vw"):
        made = relations_pb2.Relation(range={"end": number, "step": 1})
        scope = scope.with_view((name,), View(tuple(steps_of(made)), scope, folder=str(tmp_path)))

    def found(relation):
        try:
            root = keyed(relation, b"frame", enabled.inputs, scope).root
        except NectarError as error:
            return str(error), b""
        return root.refusal, root.key

    return found


def gone_through(plan, samples, key):
    """What became of a plan when each of its fields was changed; asserts that the key did, or why it need not."""
    outcomes, seen, unseen = {}, set(), {}
    waiting = [plan]
    while waiting:
        each = waiting.pop()
        refusal, before = key(each.relation)
        assert not refusal, f"{each.name}: {refusal}"
        outcomes |= {name_of(field): set() for field in each.message(each.relation).DESCRIPTOR.fields}
        for field, how, changed in changes(each, samples):
            why, after = key(changed)
            outcomes[field].add("refused" if why else "changed" if after != before else "same")
            assert why or after != before or field in LEFT_OUT, f"{each.name}: {field} ({how}) is not part of the key"
        for inner in inner_plans(each, samples):
            kind = inner.message(inner.relation).DESCRIPTOR.full_name
            why = key(inner.relation)[0]
            if why:
                unseen[kind] = why
            elif kind not in seen:
                seen.add(kind)
                waiting.append(inner)
    assert not {kind: why for kind, why in unseen.items() if kind not in seen}, "messages of which nothing was changed"
    return outcomes


def untold(outcomes):
    """Fields of which no change was seen to change a key, and that are not listed as those of which none does."""
    return {
        field: found
        for field, found in outcomes.items()
        if "changed" not in found
        and field not in LEFT_OUT
        and not (found == {"refused"} and field in REFUSED.keys() | ONE_VALUE.keys())
    }


def small(names, some):
    return [pytest.param(name, marks=pytest.mark.small if name in some else ()) for name in sorted(names)]


@pytest.mark.parametrize("kind", small(kinds.RELATIONS, SMALL[0]))
def test_every_field_of_a_relation_is_part_of_its_key(samples, key, kind):
    assert not untold(gone_through(samples.plan_of_relation(kind), samples, key))


@pytest.mark.parametrize("kind", small(kinds.EXPRESSIONS, SMALL[1]))
def test_every_field_of_an_expression_is_part_of_its_key(samples, key, kind):
    assert not untold(gone_through(samples.plan_of_expression(kind), samples, key))


@pytest.mark.small
@pytest.mark.parametrize("number", [0, 1], ids=["relation", "expression"])
def test_the_kind_is_part_of_the_key_and_nothing_else_beside_it_but_ids_and_places(samples, key, number):
    plan = samples.plans_around()[number]
    _, before = key(plan.relation)
    outcomes = {}
    for field, _, changed in changes(plan, samples):
        why, after = key(changed)
        outcomes.setdefault(field, set()).add("refused" if why else "changed" if after != before else "same")
    assert {field for field, found in outcomes.items() if "same" in found} <= LEFT_OUT.keys()
    assert len(outcomes) == len(plan.message(plan.relation).DESCRIPTOR.fields)


@pytest.mark.small
def test_no_field_that_is_listed_has_gone(samples):
    """The lists of exceptions name what the protocol has, and no more than that."""
    files = [relations_pb2.DESCRIPTOR, *relations_pb2.DESCRIPTOR.dependencies]
    waiting = [each for file in files for each in file.message_types_by_name.values()]
    fields = set()
    while waiting:
        message = waiting.pop()
        fields |= {name_of(field) for field in message.fields}
        waiting += message.nested_types
    assert REFUSED.keys() | ONE_VALUE.keys() | LEFT_OUT.keys() <= fields


@pytest.mark.small
def test_a_reference_means_the_relation_with_that_id_whatever_the_id_is(key):
    def joined(left, right, meant):
        condition = attribute("id")
        condition.unresolved_attribute.plan_id = meant
        sides = {"left": numbers(3, plan=left), "right": numbers(3, plan=right)}
        return relations_pb2.Relation(join=relations_pb2.Join(**sides, join_condition=condition, join_type=1))

    assert key(joined(2, 3, meant=2)) == key(joined(7, 8, meant=7))
    assert key(joined(2, 3, meant=2)) != key(joined(2, 3, meant=3))


@pytest.mark.small
def test_every_field_of_a_function_that_is_registered_counts(samples):
    """Commands are never reused; what they teach the server is part of the keys of what uses it."""
    plan = samples.plan_of_expression("common_inline_user_defined_function")

    def taught(relation):
        content, refusals, _ = registration_of(relation.project.expressions[0].common_inline_user_defined_function)
        return "; ".join(refusals), content

    assert not untold(gone_through(plan, samples, taught))


@pytest.mark.small
@pytest.mark.parametrize("kind", ["project", "sort"])
def test_every_field_of_the_definition_of_a_view_counts(samples, enabled, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    named = relations_pb2.Relation(read=relations_pb2.Read(named_table={"unparsed_identifier": "v"}))

    def read(relation):
        scope = Scope().with_view(("v",), View(tuple(steps_of(relation)), Scope(), folder=str(tmp_path)))
        root = keyed(named, b"frame", enabled.inputs, scope).root
        return root.refusal, root.key

    assert not untold(gone_through(samples.plan_of_relation(kind), samples, read))
