"""Models of pydantic that compare with the clock, in native code that nobody can follow."""

import datetime

import pytest

import nectar
from nectar.errors import UncacheableError

pydantic = pytest.importorskip("pydantic")
KINDS = ["FutureDate", "FutureDatetime", "PastDate", "PastDatetime"]


class Plain(pydantic.BaseModel):
    day: datetime.date


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_ask_what_time_it_is(kind):
    field = getattr(pydantic, kind)
    model = pydantic.create_model("Ask", day=(field, ...))
    declared = type(
        "Declared", (pydantic.BaseModel,), {"__annotations__": {"day": list[field]}, "__module__": __name__}
    )

    def build(day):
        return model(day=day)

    def build_declared(day):
        return declared(day=[day])

    for function in (build, build_declared):
        with pytest.raises(UncacheableError, match="reads the clock"):
            nectar.fingerprint(function)


def test_other_fields_are_fine():
    def build(day):
        return Plain(day=day)

    assert nectar.fingerprint(build)
