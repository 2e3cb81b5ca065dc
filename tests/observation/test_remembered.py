"""What was seen of a function is said once, and remembered for as long as the function is what it is."""

import threading
import warnings
import xml.etree.ElementTree

import more_itertools
import pathspec.util
import pytest
import toolz

import nectar
from nectar import session
from nectar.errors import NectarWarning


def root_of(path):
    return xml.etree.ElementTree.ElementTree(file=path).getroot().tag


def kept(memo, *args):
    session.current().settle()
    return memo.check_call_in_cache(*args)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "a.xml"
    found.write_text("<a/>")
    return str(found)


def test_it_is_said_once_with_the_lines_of_the_program(path, enabled):
    memo = nectar.memo(root_of)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert memo(path) == "a"
        assert memo(path) == "a"
    (warning,) = caught
    assert warning.category is NectarWarning
    assert warning.filename == __file__
    assert f"reads {path} ({__file__}:" in str(warning.message)
    assert "nectar.File" in str(warning.message)


def test_other_processes_do_not_try_again(path, enabled, tmp_path):
    with pytest.warns(NectarWarning):
        nectar.memo(root_of)(path)
    nectar.enable(home=tmp_path / "home", reserve=0)  # as a new process would
    memo = nectar.memo(root_of)
    with pytest.warns(NectarWarning, match="it was seen that it reads"):
        memo(path)
    (part,) = nectar.last_run().parts
    assert part.outcome == "uncacheable"


def test_another_version_of_the_function_is_another_function(path, enabled):
    with pytest.warns(NectarWarning):
        nectar.memo(root_of)(path)

    def other(path):
        return path.upper()

    other.__name__ = root_of.__name__
    memo = nectar.memo(other)
    memo(path)
    assert kept(memo, path)


def test_what_was_kept_before_it_was_seen_is_not_used_any_more(path, enabled):
    def reads_sometimes(path, how):
        return xml.etree.ElementTree.ElementTree(file=path).getroot().tag if how else "none"

    memo = nectar.memo(reads_sometimes)
    memo(path, False)
    assert kept(memo, path, False)
    with pytest.warns(NectarWarning):
        memo(path, True)
    assert not kept(memo, path, False)
    assert not session.current().catalog.index.inquire([session_program(memo)])[session_program(memo)]


def session_program(memo):
    from nectar.keys.call import program_of

    return program_of(memo.function, memo.extra)


def test_declared_inputs_are_no_observation(path, enabled):
    def root_of_file(file):
        return xml.etree.ElementTree.ElementTree(file=file.path).getroot().tag

    memo = nectar.memo(root_of_file)
    file = nectar.File(path)
    assert memo(file) == "a"
    assert kept(memo, file)


def test_those_who_know_better_may_say_so(path, enabled):
    @nectar.pure
    def vouched(path):
        return xml.etree.ElementTree.ElementTree(file=path).getroot().tag

    def calls_it(path):
        return vouched(path)

    for memo in (nectar.memo(vouched), nectar.memo(calls_it)):
        memo(path)
        assert kept(memo, path)


def test_what_others_may_have_done_is_not_remembered(path, enabled):
    ask, done = threading.Event(), threading.Event()

    def other():
        ask.wait(20)
        root_of(path)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    @nectar.pure
    def meet():
        ask.set()
        done.wait(20)

    def computing(n):
        meet()
        return n

    memo = nectar.memo(computing)
    memo(1)
    thread.join()
    assert not kept(memo, 1)
    assert "may have been its doing" in nectar.last_run().parts[0].keeping
    memo(1)
    assert kept(memo, 1)


def slowly(value):
    return value


def test_what_a_library_does_for_the_memo_itself_is_seen(tmp_path, enabled):
    """No frame of the program is on the stack: what was memoised is a function of a library."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").touch()
    count = nectar.memo(toolz.compose(slowly, len, list, pathspec.util.iter_tree_files))
    assert count(str(folder)) == 1
    assert not kept(count, str(folder))
    (folder / "b").touch()
    assert count(str(folder)) == 2


def test_what_a_function_does_whose_text_is_in_no_file_is_seen(path, enabled):
    space = {"__name__": "made", "root_of": root_of.__globals__["xml"].etree.ElementTree.ElementTree}
    exec("def f(path): return root_of(file=path).getroot().tag", space)
    memo = nectar.memo(space["f"])
    assert memo(path) == "a"
    assert not kept(memo, path)


def test_a_function_that_somebody_vouches_for_vouches_for_no_other(enabled):
    @nectar.pure
    def vouched(number):
        return number

    def shuffled(number):
        return vouched(number), more_itertools.random_permutation(range(100))

    memo = nectar.memo(shuffled)
    memo(1)
    assert not kept(memo, 1)
