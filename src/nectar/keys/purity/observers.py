"""What code can see of functions and classes beside what they compute: names, documentation, annotations and the like.

Data, and one look-up over it. Fingerprints leave these features out unless reached code observes them.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
import sys
from types import ModuleType
from typing import Any, Final

from nectar.keys.features import MAKES_CATEGORIES, NUMBERS
from nectar.keys.modules import Follower, is_arriving

_EVERYTHING: Final = frozenset({"names", "qualnames", "modules", "annotations", "docs", "signatures", "code"})
_NAMES: Final = frozenset({"names", "qualnames", "modules"})
_SHOWN: Final = frozenset({"qualnames", "modules"})  # what the texts of functions and classes contain
_HINTS: Final = frozenset({"annotations"})
_SIGNATURE: Final = frozenset({"signatures", "annotations", "names"})

# (module, qualified name) or (module, "*"): features the callable reads of functions and classes given to it.
OBSERVERS: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("inspect", "*"): _EVERYTHING,
    ("inspect", "signature"): _SIGNATURE,
    ("inspect", "Signature"): _SIGNATURE,
    ("inspect", "getfullargspec"): _SIGNATURE,
    ("inspect", "getdoc"): frozenset({"docs"}),
    ("inspect", "cleandoc"): frozenset(),
    ("inspect", "get_annotations"): _HINTS,
    **{("inspect", name): frozenset() for name in
       ("isclass", "isfunction", "ismethod", "ismodule", "isbuiltin", "isroutine", "isgenerator", "iscoroutine",
        "isawaitable", "isgeneratorfunction", "iscoroutinefunction", "isasyncgenfunction", "isasyncgen", "isabstract",
        "isdatadescriptor", "ismethoddescriptor", "getmro")},
    ("inspect", "getmembers"): _EVERYTHING | {"subclasses"},
    ("typing", "get_type_hints"): _HINTS,
    ("typing", "NamedTuple"): _HINTS | _NAMES,
    ("typing", "TypedDict"): _HINTS | _NAMES,
    ("typing_extensions", "get_type_hints"): _HINTS,
    ("dataclasses", "fields"): _HINTS,
    ("dataclasses", "dataclass"): _HINTS | _NAMES,
    ("dataclasses", "make_dataclass"): _HINTS | _NAMES,
    ("pydoc", "*"): _EVERYTHING,
    # these copy names and documentation; whoever reads the copy observes them
    ("functools", "wraps"): frozenset(),
    ("functools", "update_wrapper"): frozenset(),
    ("functools", "singledispatch"): _HINTS,
    ("functools", "singledispatchmethod"): _HINTS,
    ("builtins", "repr"): _SHOWN,
    ("builtins", "str"): _SHOWN,
    ("builtins", "ascii"): _SHOWN,
    ("builtins", "format"): _SHOWN,
    ("builtins", "str.format"): _SHOWN,
    ("builtins", "str.format_map"): _SHOWN,
    ("builtins", "print"): frozenset(),  # what is printed is not part of the result
    ("builtins", "vars"): _EVERYTHING | {"locals", "order"},
    ("builtins", "dir"): _EVERYTHING | {"locals"},
    ("builtins", "locals"): frozenset({"locals"}),
    ("builtins", "getattr"): _EVERYTHING,  # of a computed name; a constant name is looked up in ATTRIBUTE_FEATURES
    ("builtins", "type.__subclasses__"): frozenset({"subclasses"}),
    ("builtins", "type.__repr__"): _SHOWN,
    ("pprint", "*"): _SHOWN,
    ("reprlib", "*"): _SHOWN,
    ("string", "Formatter"): _SHOWN,
    ("pickle", "*"): _NAMES,
    ("_pickle", "*"): _NAMES,
    ("copyreg", "*"): _NAMES,
    ("marshal", "*"): _EVERYTHING,
    ("dis", "*"): _EVERYTHING,
    ("ast", "*"): frozenset(),
    ("enum", "Enum"): _NAMES,
    ("operator", "attrgetter"): _EVERYTHING,
    ("operator", "methodcaller"): _EVERYTHING,
}  # fmt: skip

REFUSE: Final = "refuse"
_CODE_PARTS: Final = (
    "co_argcount co_posonlyargcount co_kwonlyargcount co_nlocals co_flags co_code co_consts co_names co_varnames "
    "co_cellvars co_freevars co_exceptiontable co_stacksize func_code"
)
_REFUSED_ATTRIBUTES: Final = (
    "__globals__ __builtins__ __closure__ cell_contents __subclasses__ __loader__ __spec__ __file__ __cached__ "
    "__path__ co_filename co_firstlineno co_lines co_positions co_linetable co_lnotab __firstlineno__ "
    "__static_attributes__ f_back f_locals f_globals f_builtins f_code f_lasti f_lineno f_trace tb_frame "
    "tb_lineno tb_lasti gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code ag_await "
    "from_address in_dll _getframe func_globals func_closure cache_info"
)
_NUMBERING: Final = "to_physical physical hash hash_rows approx_n_unique peak_max peak_min top_k bottom_k reinterpret"
# Attribute names: the feature that code observes by naming them, or REFUSE.
ATTRIBUTE_FEATURES: Final[dict[str, str]] = {
    "__name__": "names",
    "__qualname__": "qualnames",
    "co_name": "names",
    "co_qualname": "qualnames",
    "__doc__": "docs",
    "__annotations__": "annotations",
    "__dict__": "order",
    **dict.fromkeys(
        ("num_chunks", "chunks", "chunk", "iterchunks", "to_batches", "n_chunks", "chunk_lengths"), "chunks"
    ),
    "flags": "flags",
    "clear_flags": "flags",
    **dict.fromkeys(_NUMBERING.split(), NUMBERS),
    "Categorical": MAKES_CATEGORIES,
    "__annotate__": "annotations",
    "__module__": "modules",
    "__code__": "code",
    "__signature__": "signatures",
    "__text_signature__": "signatures",
    "__defaults__": "signatures",
    "__kwdefaults__": "signatures",
    "__type_params__": "annotations",
    "__dataclass_fields__": "annotations",
    **dict.fromkeys(_CODE_PARTS.split(), "code"),
    **dict.fromkeys(_REFUSED_ATTRIBUTES.split(), REFUSE),
    "__hash__": REFUSE,  # depends on the hash seed of the process for texts, and on the address for most objects
}


def _public(module: ModuleType, *names: str) -> tuple[Any, ...]:
    chosen = names or tuple(name for name in vars(module) if not name.startswith("_"))
    return tuple(vars(module)[name] for name in chosen if callable(vars(module).get(name)))


_BUILTINS: Final = (
    "abs aiter all any bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float "
    "frozenset hex int isinstance issubclass iter len list map max memoryview min next object oct ord pow property "
    "range reversed round set slice sorted staticmethod sum super tuple zip"
)

# Callables that look at no name, documentation or annotation of functions and classes given to them. `type` is not
# among them: with one argument it is as good, with three it makes a class.
SAFE_CALLEES: Final[frozenset[Any]] = frozenset(
    {
        *_public(builtins, *_BUILTINS.split()),
        *_public(
            functools, "reduce", "partial", "partialmethod", "lru_cache", "cache", "cmp_to_key", "cached_property"
        ),
        *_public(itertools),
        *(value for value in _public(operator) if value not in (operator.attrgetter, operator.methodcaller)),
        *_public(math),
    }
)


def is_safe(called: object) -> bool:
    """Whether a callable is known not to look at what it is given."""
    try:
        return called in SAFE_CALLEES
    except Exception:  # what cannot be hashed or compared is none of them
        return False


# Observers that are everywhere: they count only for what is given to them, not for the whole program.
COMMON: Final[tuple[Any, ...]] = (
    str,
    repr,
    format,
    ascii,
    getattr,
    vars,
    dir,
    print,
    operator.attrgetter,
    operator.methodcaller,
)


def is_common(value: object) -> bool:
    """Whether an observer is in so many programs that only what it is given counts."""
    return any(value is each for each in COMMON)


_RARE: Final = frozenset(
    {"inspect", "pydoc", "pprint", "reprlib", "dis", "marshal", "pickle", "_pickle", "dataclasses"}
)
_MAKERS: Final = frozenset({"dataclass", "make_dataclass"})


def is_rare(value: object) -> bool:
    """Whether a callable observes features, and reaching it by whatever way is enough to assume that it does."""
    if isinstance(value, type) or is_common(value) or not observed_by(value):
        return False
    name = getattr(value, "__name__", "")
    if getattr(value, "__module__", None) in ("typing", "typing_extensions"):
        return name == "get_type_hints"
    return getattr(value, "__module__", None) in _RARE and name not in _MAKERS


def observed_by(value: object) -> frozenset[str] | None:
    """Features a library callable reads of what it is given; None if it is not known to read any."""
    _modules.follow()
    found = _index.get(id(value))
    return found[1] if found is not None else None


_index: dict[int, tuple[object, frozenset[str]]] = {}


def _take_in() -> bool:
    complete = True
    for (module_name, name), features in sorted(OBSERVERS.items(), key=lambda item: item[0][1] != "*"):
        module = sys.modules.get(module_name)
        if not isinstance(module, ModuleType):
            continue
        complete = complete and not is_arriving(module)
        if name == "*":
            members = [
                value for value in list(vars(module).values()) if getattr(value, "__module__", None) == module_name
            ]
        else:
            found: Any = vars(module)
            for part in name.split("."):
                found = found.get(part) if isinstance(found, dict) else vars(found).get(part)
            members = [found]
        for value in members:
            if callable(value):
                _index[id(value)] = (value, features)
    return complete


_modules: Final = Follower(_take_in)
