"""Bytecode is read as the interpreter's own reader does, whether or not some arguments take more than a byte."""

import ast
import dis
import inspect
import json.decoder
import statistics
import types

import pytest

from nectar.keys.bytecode import decode


def all_codes(module):
    """Every code object of a module, nested ones included."""
    pending = [compile(inspect.getsource(module), module.__name__, "exec")]
    while pending:
        code = pending.pop()
        yield code
        pending.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))


CODES = [code for module in (ast, dis, inspect, json.decoder, statistics) for code in all_codes(module)]
LONG = [code for code in CODES if dis.opmap["EXTENDED_ARG"] in code.co_code[::2]]
SHORT = [code for code in CODES if code not in LONG]


def by_dis(code):
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("EXTENDED_ARG", "CACHE")]
    return [(step.opname, step.arg or 0) for step in steps if step.opname in dis.opmap]


@pytest.mark.parametrize("codes", [SHORT, LONG], ids=["short", "long"])
def test_names_and_arguments_are_those_of_dis(codes):
    assert len(codes) > 5
    for code in codes:
        steps = [(name, arg) for _, name, arg, _ in decode.instructions(code)]
        assert [(name, arg if dis.opmap[name] >= dis.HAVE_ARGUMENT else 0) for name, arg in steps] == by_dis(code)


def test_reading_without_long_arguments_gives_what_reading_with_them_gives():
    for code in SHORT:
        assert decode.decoded(code.co_code) == decode._extended_instructions(code.co_code)


def test_instructions_follow_one_another():
    for code in CODES:
        steps = decode.instructions(code)
        assert [step[0] for step in steps[1:]] == [step[3] for step in steps[:-1]]
        assert steps[-1][3] == len(code.co_code)
