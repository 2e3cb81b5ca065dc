"""The short way to a template gives what the long one gives."""

import msgspec
from tests.keys.bytecode.test_decode import CODES

from nectar.keys.bytecode import symbolic, template

FUNCTIONS = [code for code in CODES if code.co_name != "<module>"]


def content(value):
    if isinstance(value, msgspec.Struct):
        return [content(getattr(value, name)) for name in value.__struct_fields__]
    return [content(each) for each in value] if isinstance(value, list | tuple) else value


def test_code_without_branches_is_shaped_as_any_other():
    straight = [code for code in FUNCTIONS if len(symbolic.run(code).blocks) == 1]
    assert len(straight) > 100
    for code in straight:
        assert content(template._straight(symbolic.run(code))) == content(template._Shaper(symbolic.run(code)).blocks())


def test_values_know_the_operation_that_gives_them():
    for code in FUNCTIONS:
        made = template.template_of(code)
        for block in made.blocks:
            for operation in block.operations:
                results = range(operation.result, operation.result + operation.results)
                assert all(made.data[result] is operation for result in results)
