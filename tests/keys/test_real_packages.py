"""Every public function of installed packages, treated as application code: none crashes, few are refused.

Refused functions are named one by one, so that a new false alarm and a function that is suddenly accepted both show.
"""

from __future__ import annotations

import functools

import pytest
from benchmarks.real_code import ACCEPTED, CRASHED, FUNCTION, PACKAGES, Finding

from benchmarks import real_code

# Public functions and methods, and how many of them are refused at the most. All that is refused draws random numbers,
# reads files, frames, the clock or the machine, or changes state of its module; some of it in one branch only.
MOST_REFUSED = {"more_itertools": (174, 12), "attr": (51, 8), "toolz": (85, 2), "boltons": (437, 70)}

# What these do depends on more than their arguments, or changes more than their result; see each function.
TRULY_IMPURE = {
    "more_itertools": {
        "interleave_randomly", "random_ordered_range", "sample", "random_combination",
        "random_combination_with_replacement", "random_derangement", "random_permutation", "random_product",
    },
    "attrs": {"attr", "field", "attributes", "define", "make_class", "set_run_validators"},
    "toolz": {"random_sample"},
    "boltons": {
        "make_sentinel", "make_cache_key", "cached", "cachedmethod", "pdb_on_signal", "pdb_on_exception", "wrap_trace",
        "deprecate_module_member", "get_python_info", "get_profile", "get_profile_json", "main", "mkdir_p",
        "atomic_save", "iter_find_files", "copytree", "get_module_callables", "copy_function", "format_nonexp_repr",
        "wraps", "update_wrapper", "get_all", "backoff", "backoff_iter", "untyped_sorted", "namedlist", "namedtuple",
        "shrinkuser", "expandpath", "format_histogram_counts", "decimal_relative_time", "relative_time",
        "get_all_subclasses", "register_scheme",
    },
    "requests": {
        "delete", "get", "head", "options", "patch", "post", "put", "request", "session", "get_netrc_auth",
        "get_environ_proxies", "should_bypass_proxies", "extract_zipped_paths", "atomic_open", "set_environ",
        "super_len", "morsel_to_cookie", "resolve_proxies", "info", "main",
    },
}  # fmt: skip


# Each of the curried functions of toolz leads to all of its functions, a quarter of a second each.
EACH = [pytest.param(package, marks=pytest.mark.deep) if package == "toolz" else package for package in PACKAGES]


@functools.cache
def findings(package: str) -> tuple[Finding, ...]:
    if not real_code.is_installed(package):
        pytest.skip(f"{package} is not installed")
    return tuple(real_code.examine(package, forgetting=False))


@pytest.mark.parametrize("package", EACH)
def test_nothing_public_crashes(package):
    crashed = [finding for finding in findings(package) if finding.result == CRASHED]
    assert crashed == []
    assert len(findings(package)) > 40


@pytest.mark.parametrize("root", MOST_REFUSED)
def test_few_functions_are_refused(root):
    pytest.importorskip(root)
    expected, most = MOST_REFUSED[root]
    count, refused = real_code.refused_of(root)
    assert abs(count - expected) <= expected // 10, f"{root} has changed much: count again"
    assert len(refused) <= most, "\n".join(f"{name}: {reason}" for name, reason in refused.items())


@pytest.mark.parametrize("package", EACH)
def test_what_is_impure_is_refused(package):
    accepted = {
        finding.name.rpartition(".")[2]
        for finding in findings(package)
        if finding.kind == FUNCTION and finding.result == ACCEPTED
    }
    assert accepted & TRULY_IMPURE[package] == set()
