"""Objects of attrs, pydantic, Pillow, lxml and XGBoost: the same key in every process, another for other content."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nectar.errors import UnencodableError
from nectar.keys.call import call_of

SOURCE = Path(__file__).parents[3] / "src"

# Each line is a program that ends with a value; programs of one group must all have different keys.
ATTRS = """
import attrs
@attrs.define
class P:
    a: int
    b: list = attrs.field(factory=list)
---
value = P(1)
---
value = P(2)
---
value = P(1, [3])
---
value = P
---
@attrs.frozen
class F:
    a: int = attrs.field(default=3, validator=attrs.validators.instance_of(int))
value = F()
---
@attrs.frozen
class F:
    a: int = attrs.field(default=3, validator=attrs.validators.instance_of(float), eq=False)
value = F
---
@attrs.define
class F:
    a: int = attrs.field(default=3, converter=lambda v: v + 1)
value = F()
---
@attrs.define
class F:
    a: int = attrs.field(default=3, converter=lambda v: v + 2)
value = F
---
@attrs.define(slots=False)
class F:
    a: int = 4
    def twice(self):
        return self.a * 2
value = F()
---
@attrs.define(slots=False)
class F:
    a: int = 4
    def twice(self):
        return self.a * 3
value = F()
---
@attrs.frozen(cache_hash=True)
class F:
    a: int
value = {F(1): 2, F(2): 1}
"""
PYDANTIC = """
import datetime, typing, pydantic
class P(pydantic.BaseModel):
    a: int
    b: typing.List[str] = []
---
value = P(a=1)
---
value = P(a=2)
---
value = P(a=1, b=[])
---
value = P
---
class Q(P):
    c: float = pydantic.Field(1.5, gt=0)
value = Q(a=1)
---
class Q(P):
    c: float = pydantic.Field(1.5, gt=1)
value = Q(a=1)
---
class Q(P):
    model_config = pydantic.ConfigDict(frozen=True, str_to_lower=True)
value = Q(a=1)
---
class Q(P):
    model_config = pydantic.ConfigDict(frozen=True)
value = Q(a=1)
---
class Q(P):
    @pydantic.field_validator("a")
    @classmethod
    def check(cls, v):
        return v
value = Q(a=1)
---
class Q(P):
    @pydantic.field_validator("a")
    @classmethod
    def check(cls, v):
        return v + 1
value = Q(a=0)
---
class Q(P):
    @pydantic.field_validator("a", mode="before")
    @classmethod
    def check(cls, v):
        return v
value = Q(a=1)
---
class Q(P):
    @pydantic.model_validator(mode="after")
    def check(self):
        return self
value = Q(a=1)
---
class Q(P):
    @pydantic.computed_field
    @property
    def d(self) -> int:
        return self.a
value = Q(a=1)
---
class Q(P):
    @pydantic.computed_field
    @property
    def d(self) -> int:
        return self.a + 1
value = Q(a=1)
---
class Q(P):
    @pydantic.field_serializer("a")
    def text(self, v):
        return str(v)
value = Q(a=1)
---
class Q(P):
    @pydantic.field_serializer("a")
    def text(self, v):
        return repr(v) + "!"
value = Q(a=1)
---
class Q(pydantic.BaseModel):
    inner: P
    others: typing.List["Q"] = []
    when: datetime.date = datetime.date(2020, 1, 1)
value = Q(inner=P(a=1), others=[Q(inner=P(a=2))])
---
class Q(pydantic.BaseModel):
    _hidden: int = pydantic.PrivateAttr(1)
value = Q()
---
class Q(pydantic.BaseModel):
    _hidden: int = pydantic.PrivateAttr(2)
value = Q()
---
T = typing.TypeVar("T")
class Q(pydantic.BaseModel, typing.Generic[T]):
    x: T
value = Q[int](x=1)
---
T = typing.TypeVar("T")
class Q(pydantic.BaseModel, typing.Generic[T]):
    x: T
value = Q[float](x=1)
---
class Q(pydantic.RootModel[typing.List[int]]):
    pass
value = Q([1])
---
@pydantic.dataclasses.dataclass
class Q:
    a: int
value = Q(1)
---
@pydantic.dataclasses.dataclass
class Q:
    a: int = pydantic.Field(gt=0)
value = Q(1)
---
value = pydantic.TypeAdapter(typing.List[int])
---
value = pydantic.TypeAdapter(typing.List[float])
"""
PILLOW = """
import io
from PIL import Image
def saved(image, kind):
    file = io.BytesIO()
    image.save(file, kind)
    file.seek(0)
    return file
RED = Image.new("RGB", (4, 3), (200, 0, 0))
---
value = RED
---
value = Image.new("RGB", (3, 4), (200, 0, 0))
---
value = Image.new("RGB", (4, 3), (201, 0, 0))
---
value = RED.convert("L")
---
value = RED.convert("P")
---
value = RED.copy()
value.info["dpi"] = (72, 72)
---
value = RED.copy()
value.getexif()[271] = "maker"
---
value = Image.new("P", (4, 3))
value.putpalette(list(range(30)))
---
value = Image.new("P", (4, 3))
value.putpalette(list(range(1, 31)))
---
value = Image.open(saved(RED, "PNG"))
---
value = Image.open(saved(RED, "JPEG"))
---
value = [RED, RED]
---
value = [RED, RED.copy()]
"""
LXML = """
from lxml import etree, html
DOCUMENT = etree.fromstring("<a><b k='1'>t</b><b k='1'>t</b><!--c--></a>")
---
value = DOCUMENT
---
value = DOCUMENT[0]
---
value = DOCUMENT[1]
---
value = DOCUMENT[2]
---
value = etree.fromstring("<a><b k='1'>t</b></a>")[0]
---
value = etree.fromstring("<a><b k='2'>t</b><b k='1'>t</b><!--c--></a>")
---
value = etree.fromstring("<a>\\n<b k='1'>t</b><b k='1'>t</b><!--c--></a>")
---
value = etree.fromstring("<x:a xmlns:x='u'><b k='1'>t</b></x:a>")
---
value = etree.ElementTree(DOCUMENT)
---
value = etree.fromstring("<?xml version='1.0' encoding='iso-8859-1'?><a/>".encode())
---
value = etree.fromstring("<a/>")
---
value = etree.fromstring("<!DOCTYPE a [<!ENTITY e 'x'>]><a/>")
---
value = [DOCUMENT[0], DOCUMENT]
---
value = [DOCUMENT[0], etree.fromstring(etree.tostring(DOCUMENT))]
---
value = html.fromstring("<p>hello <b>1</b></p>")
---
value = html.fromstring("<p>hello <b>2</b></p>")
"""
XGBOOST = """
import numpy as np
import xgboost
X = np.arange(20.0).reshape(10, 2)
def trained(y, **options):
    return xgboost.train({"max_depth": 2, "nthread": 1, **options}, xgboost.DMatrix(X, y), 2)
---
value = trained(np.arange(10.0))
---
value = trained(np.arange(10.0) + 1)
---
value = trained(np.arange(10.0), eta=0.5)
---
value = trained(np.arange(10.0))
value.feature_names = ["a", "b"]
---
value = xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(X, np.arange(10.0))
---
value = xgboost.XGBRegressor(n_estimators=2, n_jobs=1)
"""
WRAPT = """
import functools
import wrapt
@wrapt.decorator
def plain(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs)
@wrapt.decorator
def doubled(wrapped, instance, args, kwargs):
    return 2 * wrapped(*args, **kwargs)
---
@plain
def value(x):
    return x
---
@doubled
def value(x):
    return x
---
@plain
def value(x):
    return x + 1
---
@plain
@plain
def value(x):
    return x
---
class Some:
    @plain
    def method(self):
        return 1
value = Some().method
---
class Some:
    @doubled
    def method(self):
        return 1
value = Some
---
class Some:
    @plain
    def __hash__(self):
        return 1
value = Some
---
class Some:
    @doubled
    def __hash__(self):
        return 1
value = Some
---
@plain
def value(x):
    return x
value._self_note = 3
"""
RPDS = """
from rpds import HashTrieMap, HashTrieSet
class Some:
    pass
---
value = HashTrieMap({"a": 1, "b": 2, "c": 3, "d": (4, "e")})
---
value = HashTrieMap({"a": 1, "b": 2, "c": 3, "d": (4, "f")})
---
value = HashTrieMap({"a": 1, "b": 2, "c": 3})
---
value = HashTrieMap({"a": {"x": [1]}, "b": Some(), "c": HashTrieMap({"d": [1]})})
---
value = HashTrieMap({"a": {"x": [1]}, "b": Some(), "c": HashTrieMap({"d": [2]})})
---
value = HashTrieSet(["a", "b", "c", "d", "e"])
---
value = HashTrieSet(["a", "b", "c", "d", "f"])
---
value = HashTrieMap({})
---
value = HashTrieSet([])
"""
GMPY2 = """
import gmpy2
---
value = gmpy2.mpz(3)
---
value = gmpy2.mpz(-3)
---
value = gmpy2.mpz(3**400)
---
value = gmpy2.xmpz(3)
---
value = gmpy2.mpq(1, 3)
---
value = gmpy2.mpfr("0.1")
---
value = gmpy2.mpfr("0.1", 100)
---
value = gmpy2.mpfr("0.5")
---
value = gmpy2.mpfr("nan")
---
value = gmpy2.mpfr("-inf")
---
value = gmpy2.mpfr("-0.0")
---
value = gmpy2.mpfr("0.0")
---
value = gmpy2.mpc("1.5+2j")
---
value = 3
"""
MSGSPEC = """
import msgspec
---
class Some(msgspec.Struct):
    a: int = 1
value = Some
---
class Some(msgspec.Struct):
    a: int = 2
value = Some
---
class Some(msgspec.Struct):
    a: str = 1
value = Some
---
class Some(msgspec.Struct):
    a: int
value = Some
---
class Some(msgspec.Struct):
    a: list = []
value = Some
---
class Some(msgspec.Struct):
    a: list = msgspec.field(default_factory=lambda: [1])
value = Some
---
class Some(msgspec.Struct):
    a: list = msgspec.field(default_factory=lambda: [2])
value = Some
---
class Some(msgspec.Struct):
    a: int = msgspec.field(name="b", default=1)
value = Some
---
class Some(msgspec.Struct, rename="upper"):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, omit_defaults=True):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, tag="x"):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, tag_field="kind", tag="x"):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, array_like=True):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, frozen=True):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, forbid_unknown_fields=True):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, order=True):
    a: int = 1
value = Some
---
class Some(msgspec.Struct, eq=False):
    a: int = 1
value = Some
"""
GROUPS = {
    "wrapt": WRAPT, "attrs": ATTRS, "pydantic": PYDANTIC, "PIL": PILLOW, "lxml": LXML, "xgboost": XGBOOST, "rpds": RPDS,
    "gmpy2": GMPY2, "msgspec": MSGSPEC,
}  # fmt: skip
RUN = """
import json, sys
from nectar.keys.call import call_of
def reads(x):
    return x.a
def ran(*texts):
    space = {"__name__": "__main__"}
    for text in texts:
        exec(text, space)
    return space
head, *programs = json.loads(sys.argv[1])
keys = []
for program in programs:
    space = ran(head, program)
    vars(sys.modules["__main__"]).update(space)
    call = call_of(reads, {"x": space["value"]})
    assert not call.refusals, (program, call.refusals)
    keys.append(call.digest.hex())
    assert call_of(reads, {"x": space["value"]}).digest.hex() == keys[-1], program
print(json.dumps(keys))
"""


def keys_of(text, seed):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed}
    programs = json.dumps([program.strip() for program in text.split("---")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, programs], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("library", "text"), GROUPS.items(), ids=GROUPS)
def test_keys_are_the_same_in_other_processes_and_differ_where_programs_do(library, text):
    pytest.importorskip(library)
    keys = keys_of(text, "1")
    assert keys == keys_of(text, "2")
    programs = text.split("---")[1:]
    alike = [
        (one, two)
        for at, one in enumerate(programs)
        for other, two in enumerate(programs[:at])
        if keys[at] == keys[other]
    ]
    assert alike == []


def test_an_image_of_several_frames_is_refused_with_a_way_out():
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    frames = [image.new("L", (4, 4), color) for color in (0, 99)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(UnencodableError, match=r"hand over a copy \(image.copy\(\)\)"):
        call_of(len, {"x": image.open(file)})


def test_an_element_that_is_changed_has_another_key():
    etree = pytest.importorskip("lxml.etree")
    document = etree.fromstring("<a><b/></a>")
    before = call_of(len, {"x": document[0]}).digest
    document.set("k", "v")
    assert call_of(len, {"x": document[0]}).digest != before
