"""Programs written by an attacker: pairs that must not share a fingerprint, and changes that must change one.

pairs.json holds pairs of programs by surface, each with a witness that shows them to differ; changes.json holds
programs with code that changes something after the first fingerprint. A refusal is as good as a difference. What is
known to fail stands in FAILING below, by reason; mending it makes the test fail until the name is taken out.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="programs run in forked children")

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
PAIRS: list[dict[str, Any]] = json.loads((HERE / "pairs.json").read_text(encoding="utf-8"))
CHANGES: list[dict[str, Any]] = json.loads((HERE / "changes.json").read_text(encoding="utf-8"))
SLOW_TO_IMPORT = ("numpy", "pandas", "pyarrow")
LIBRARIES = ("numpy", "pandas", "polars", "pyarrow", "attr")

# What is known to fail: why, and which cases.
FAILING: dict[str, str] = {
    "a call fills the cache of a singledispatchmethod": "singledispatchmethod",
    "a handler that only raises again is dropped together with the outer handler behind it": (
        "flow_outer_try_of_inner_try flow_raise_in_handler_under_outer flow_handler_in_loop_outer"
    ),
    "super() without arguments reads the first local, whose stores are dropped": (
        "super_self_rebound super_after_del_self"
    ),
    "the name a class body looks up before the captured variable is dropped": "classderef_prepare",
    "the variable of an inlined comprehension is taken for the cell of the same name": (
        "comprehension_variable_named_like_a_cell"
    ),
    "names of parameters of nested functions do not count, though calls pass them by keyword": (
        "nested_parameter_names_swapped nested_lambda_parameter_names"
    ),
    "keywords kept in a partial or methodcaller do not make names of parameters count": (
        "partial_keyword_names partialmethod_keyword_names methodcaller_keyword_names"
    ),
    "a library that calls by keyword does not make names of parameters count": "library_calls_by_keyword",
    "names of parameters count for a function only, not for other callables that are fingerprinted": (
        "root_callable_parameter_names root_class_parameter_names root_lru_cache_parameter_names "
        "root_partial_parameter_names"
    ),
    "the class of a module is left out, though its properties come before the namespace": (
        "module_property_class_shadowing module_getattribute_class"
    ),
    "dunder names of a module that is used as a value are left out": "module_dunder_in_list module_dunder_getattr",
    "a reached global statement stops all globals from being looked up, so that nothing they refer to counts": (
        "pure_rebinding pure_rebinding_helper rebinding_in_helper_loses_globals rebinding_in_helper_loses_constant "
        "rebinding_lazy_singleton rebinding_in_method rebinding_in_library_class_user"
    ),
    "attributes are put in order of name, though code can see the order in which they were set": (
        "class_dict_order instance_dict_order instance_dict_order_json namespace_repr_order "
        "argparse_namespace_order function_dict_order"
    ),
    "__abstractmethods__ is left out, though it can be set by hand": "abstractmethods_cleared",
    "_value2member_map_ is left out, though classes add to it by hand": "enum_value_alias",
    "annotations are members of a runtime protocol": "protocol_annotation_member",
    "whether two NaNs are one object decides about membership": "nan_alias",
    "__context__ of a captured exception is left out": "exception_context",
    "the order of memory is left out, though nditer and order='K' show it": "np_order np_order_nditer np_flags",
    "shared memory of two arrays is left out": "np_memory_view_alias",
    "the chunks of a chunked array are left out": "pa_chunks",
    "a setting polars does not keep in the environment": "pl_string_cache_config",
    "changes to a library module that is used as a value are not noticed": (
        "library_module_patched_conditional library_module_data_patched_in_list"
    ),
    "registration with an abstract base class of a library is left out": "library_abc_register",
    "state that a library keeps for the process": (
        "copyreg codecs_error_handler urllib_uses_netloc csv_dialect warnings_filter int_max_str_digits recursion_limit"
    ),
    "only plain functions and properties put onto a library class are noticed": (
        "pandas_accessor polars_namespace library_patch_partialmethod library_patch_callable"
    ),
    "data or functions put into library code that is reached indirectly are not noticed": (
        "json_class_data_patched json_class_data_patched_dumps library_submodule_patched"
    ),
    "a function with private globals put onto a library class is not noticed": "library_patch_exec",
    "a library function put in the place of another is not noticed": "library_patch_by_library",
    "changed defaults or attributes of a library function are not noticed": "json_kwdefault",
    "methods put onto the class of an atom are not noticed": (
        "library_class_patched_in_module path_method_patched fraction_method_patched"
    ),
    "the decimal context counts only where decimal itself is reached": (
        "decimal_function_context decimal_context_indirect"
    ),
    "the name of the class of a value that is shown as text does not count": (
        "exception_class_name_repr namedtuple_class_name_repr namedtuple_class_name_fstring "
        "namedtuple_name_percent enum_class_name_str enum_class_name_format enum_class_name_json_repr "
        "exception_str_type"
    ),
    "an observer that is handed over instead of called does not count": "map_str_classes",
    "documentation read under a computed name does not count": (
        "getattr_doc_from_global getattr_doc_computed getattr_through_helper_doc getattr_via_type_doc"
    ),
    "an observer that is handed over or captured instead of called does not count": (
        "attrgetter_global observer_in_list map_getdoc partial_getdoc"
    ),
    "names of functions made inside do not count when handed to a library": (
        "pandas_agg_nested_function pandas_agg_factory"
    ),
    "names of functions reached from captured objects do not count when handed to a library": (
        "pandas_agg_partial pandas_agg_lru pandas_agg_from_list_copy pandas_agg_from_obj"
    ),
    "a call fills the thread-local data of the generated __repr__": "attrs_repr_name",
    "names of functions and parameters show in the texts of errors": (
        "exception_message_type_error exception_message_missing_argument_name"
    ),
}
FAILING_CHANGES: dict[str, str] = {
    "a changed name of a class is not noticed later": "class_name class_qualname class_str exposed_class_name",
    "a module imported inside the function is not looked up again": (
        "local_import_replaced local_import_from_replaced"
    ),
    "methods put onto the class of an atom are not noticed": "library_method_patch",
    "changed defaults or attributes of a library function are not noticed": "library_function_attr",
    "registration with an abstract base class of a library is left out": "library_abc_register",
}
# The versions of Python on which a known failure fails, where those are not all.
VERSIONS: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "singledispatchmethod": ((3, 13), (3, 99)),
    "comprehension_variable_named_like_a_cell": ((3, 12), (3, 99)),
    "flow_handler_in_loop_outer": ((3, 13), (3, 99)),
    "protocol_annotation_member": ((3, 11), (3, 11)),
    "super_after_del_self": ((3, 11), (3, 11)),
    "super_self_rebound": ((3, 11), (3, 11)),
    "library_module_patched_conditional": ((3, 11), (3, 11)),
}
KNOWN = {name: reason for reason, names in FAILING.items() for name in names.split()}
KNOWN_CHANGES = {name: reason for reason, names in FAILING_CHANGES.items() for name in names.split()}


class Workers:
    """Interpreters with different hash seeds, with and without libraries loaded, each forking a child per program."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, bool], subprocess.Popen[str]] = {}

    def run(self, job: dict[str, Any], seed: int) -> dict[str, Any]:
        loaded = any(f"import {name}" in text for text in job["files"].values() for name in SLOW_TO_IMPORT)
        worker = self._running.get((seed, loaded)) or self._start(seed, loaded)
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(repr(job) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        assert line, "the interpreter that runs the programs has ended"
        found: dict[str, Any] = ast.literal_eval(line)
        return found

    def _start(self, seed: int, loaded: bool) -> subprocess.Popen[str]:
        settings = dict(os.environ, PYTHONHASHSEED=str(seed), PYTHONPATH=str(SOURCE), PYTHONDONTWRITEBYTECODE="1")
        self._running[seed, loaded] = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), *(SLOW_TO_IMPORT if loaded else ())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=settings,
        )  # fmt: skip
        return self._running[seed, loaded]

    def stop(self) -> None:
        for worker in self._running.values():
            worker.communicate(timeout=60)


@pytest.fixture(scope="module")
def workers() -> Any:
    made = Workers()
    yield made
    made.stop()


def _parameters(cases: list[dict[str, Any]], known: dict[str, str]) -> list[Any]:
    return [pytest.param(case, id=case["id"], marks=_marks(case["id"], known)) for case in cases]


def _marks(name: str, known: dict[str, str]) -> list[Any]:
    first, last = VERSIONS.get(name, ((3, 11), (3, 99)))
    if name not in known or not first <= sys.version_info[:2] <= last:
        return []
    return [pytest.mark.xfail(strict=True, reason=known[name])]


def _skip_without_libraries(program: dict[str, str]) -> None:
    for library in LIBRARIES:
        if any(f"import {library}" in text for text in program.values()):
            pytest.importorskip(library)


@pytest.mark.parametrize("case", _parameters(PAIRS, KNOWN))
def test_programs_that_differ_have_different_fingerprints(case: dict[str, Any], workers: Workers) -> None:
    _skip_without_libraries(case["a"])
    one, other = (workers.run({"files": case[side], "witness": case["witness"]}, 1) for side in ("a", "b"))
    for found in (one, other):
        assert found["status"] in ("ok", "refused"), found["value"]
    assert one["seen"] != other["seen"], "the witness shows no difference"
    if one["status"] == "refused" or other["status"] == "refused":
        return
    assert one["value"] != other["value"]
    assert one["again"] == one["value"], "calling it changed its fingerprint"
    again = workers.run({"files": case["a"]}, 2)
    assert again["value"] == one["value"], "another process, another fingerprint"


@pytest.mark.parametrize("case", _parameters(CHANGES, KNOWN_CHANGES))
def test_a_change_of_behaviour_changes_the_fingerprint(case: dict[str, Any], workers: Workers) -> None:
    _skip_without_libraries(case["program"])
    found = workers.run({"files": case["program"], "after": case["after"], "witness": case["witness"]}, 1)
    assert found["status"] in ("ok", "refused"), found["value"]
    assert found["seen"] != found["seen_later"], "the witness shows no difference"
    assert found["status"] == "refused" or found["later"] != found["value"]


@pytest.mark.parametrize("mode", ["main", "cell", "string"])
def test_how_a_program_is_loaded_does_not_matter(mode: str, workers: Workers) -> None:
    shows_its_module = {"attrgetter_from_list", "pickle_by_name"}
    moved = [
        case["id"]
        for case in PAIRS[::4]
        if len(case["a"]) == 1
        and case["surface"] != "data libraries"
        and case["id"] not in shows_its_module
        and not any(library in case["a"]["prog.py"] for library in LIBRARIES)
        and (imported := workers.run({"files": case["a"]}, 1))["status"] == "ok"
        and workers.run({"files": case["a"], "mode": mode}, 2)["value"] != imported["value"]
    ]
    assert moved == []
