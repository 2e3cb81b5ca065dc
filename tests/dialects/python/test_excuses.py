"""Functions that are handed a declared file and read another one: none of them may pass as declared."""

import glob
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pytest

import nectar

pytestmark = [pytest.mark.usefixtures("enabled"), pytest.mark.filterwarnings("ignore")]


class Elsewhere:
    """Looks like a declared file, and is none."""

    path = ""  # set by the fixture


def opens(path):
    with open(path) as opened:
        return opened.read()


def opens_a_neighbour(file):
    return opens(file.path.replace("data", "other"))


def bound_anew(file):
    file = Elsewhere
    return open(file.path).read()


def bound_within_an_expression(file):
    return open((file := Elsewhere).path).read() + file.path


def chosen(file, flag=True):
    path = Elsewhere.path if flag else file.path
    return open(path).read()


def in_a_loop(file):
    return "".join(open(path).read() for path in [file.path, Elsewhere.path])


def shadowed_by_an_inner_function(file):
    def inner(file):
        return open(file.path).read()

    return inner(Elsewhere)


def shadowed_by_a_lambda(file):
    return (lambda file: open(file.path).read())(Elsewhere)


def shadowed_by_a_comprehension(file):
    return [open(file.path).read() for file in [Elsewhere]][0]


def edited_path(file):
    return open(file.path[: -len("data.txt")] + "other.txt").read()


def formatted_path(file):
    return open(f"{os.path.dirname(file.path)}/other.txt").read()


def attribute_by_name(file):
    return open(getattr(file, "path").replace("data", "other")).read()


def rest(*files):
    return open([*files, Elsewhere][-1].path).read()


def and_then(file):
    return open((file and Elsewhere).path).read()


def through_a_helper(file):
    return opens(Elsewhere.path)


def through_a_helper_that_edits(file):
    return opens_a_neighbour(file)


def neighbour_by_pathlib(file):
    return pathlib.Path(file.path).with_name("other.txt").read_text()


def parent_by_pathlib(file):
    return (pathlib.Path(file).parent / "other.txt").read_text()


def found_by_a_pattern(file):
    return open(glob.glob(os.path.dirname(file.path) + "/oth*")[0]).read()


def within_a_converter(file):
    return pd.read_csv(file.path, header=None, converters={0: lambda _: open(Elsewhere.path).read()})[0][0]


def two_at_once(file):
    with open(file.path) as one, open(Elsewhere.path) as other:
        return one.read() + other.read()


def named_by_the_content(file):
    return open(open(file.path).read()).read()


def by_numpy(file):
    return np.fromfile(file.path.replace("data", "other"), dtype="u1").tolist()


def by_polars(file):
    return pl.read_csv(os.path.dirname(file.path) + "/oth*.txt", has_header=False).rows()


def several_by_polars(file):
    return pl.scan_csv([file.path, Elsewhere.path], has_header=False).collect().rows()


def by_a_process(file):
    return subprocess.run(["cat", file.path, Elsewhere.path], capture_output=True, check=True).stdout


def declared_inside(file):
    return nectar.File(Elsewhere.path).read_text()


def declared_by_its_class(file):
    return file.__class__(Elsewhere.path).read_text()


def after_an_error(file):
    try:
        return open(file.no_path).read()
    except AttributeError:
        return open(Elsewhere.path).read()


FUNCTIONS = [
    bound_anew, bound_within_an_expression, chosen, in_a_loop, shadowed_by_an_inner_function, shadowed_by_a_lambda,
    shadowed_by_a_comprehension, edited_path, formatted_path, attribute_by_name, rest, and_then, through_a_helper,
    through_a_helper_that_edits, neighbour_by_pathlib, parent_by_pathlib, found_by_a_pattern, within_a_converter,
    two_at_once, named_by_the_content, by_numpy, by_polars, several_by_polars, by_a_process, declared_inside,
    declared_by_its_class, after_an_error,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_another_file_is_a_hidden_input(function, tmp_path, monkeypatch):
    other = tmp_path / "other.txt"
    monkeypatch.setattr(Elsewhere, "path", str(other))
    (tmp_path / "data.txt").write_text(str(other))
    file, memoised = nectar.File(tmp_path / "data.txt"), nectar.memo(function)
    answers = []
    for text in ("11", "22"):
        other.write_text(text)
        answers.append(function(file))
        assert memoised(file) == answers[-1]
    assert answers[0] != answers[1], "otherwise this says nothing"


def beside_the_pattern(folder):
    return open(folder.path + "/notes.txt").read()


def below(folder):
    return open(folder.path + "/sub/x.txt").read()


def listed(folder):
    return sorted(os.listdir(folder.path)), sorted(os.listdir(folder.path + "/sub"))


def walked(folder):
    return sorted(name for _, _, names in os.walk(folder.path) for name in names)


def found(folder):
    return sorted(map(str, pathlib.Path(folder.path).rglob("*")))


def is_there(folder):
    return os.path.exists(folder.path + "/sub/new")


def scanned(folder):
    return pl.read_csv(folder.path + "/*.txt", has_header=False).rows()


@pytest.mark.parametrize("pattern", ["", "*.csv", "**/*.csv"])
@pytest.mark.parametrize("function", [beside_the_pattern, below, listed, walked, found, is_there, scanned])
def test_what_a_folder_does_not_name_is_a_hidden_input(function, pattern, tmp_path):
    place = tmp_path / "folder"
    (place / "sub").mkdir(parents=True)
    memoised, folder = nectar.memo(function), nectar.Folder(place, pattern)
    for step in range(3):
        (place / "a.csv").write_text("1")
        (place / "notes.txt").write_text(f"n{step}")
        (place / "sub" / "x.txt").write_text(f"x{step}")
        if step == 2:
            (place / "sub" / "new").write_text("")
            (place / "empty").mkdir()
        assert memoised(folder) == function(folder)
    shutil.rmtree(place)
