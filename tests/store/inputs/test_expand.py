import os

import pytest

from nectar.errors import InputFailure, MissingInputError
from nectar.store.inputs.expand import expand


@pytest.fixture
def tree(tmp_path):
    for name in ("b.csv", "a.csv", "p10.csv", "p9.csv", ".hidden.csv", "sub/c.csv", "sub/.git/d.csv", "sub/deep/e.txt"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "tree"


def names(root, found):
    return [os.path.relpath(path, root) for path in found]


def test_folder_is_all_its_files_sorted_without_hidden_ones(tree):
    found = expand(tree)
    assert names(tree, found) == ["a.csv", "b.csv", "p10.csv", "p9.csv", "sub/c.csv", "sub/deep/e.txt"]
    assert found == expand(f"file://{tree}") == expand(f"{tree}/")


def test_pattern_is_the_files_that_match(tree):
    assert names(tree, expand(f"{tree}/*.csv")) == ["a.csv", "b.csv", "p10.csv", "p9.csv"]
    assert names(tree, expand(tree / "**" / "*.csv")) == ["a.csv", "b.csv", "p10.csv", "p9.csv", "sub/c.csv"]
    assert names(tree, expand(f"{tree}/[ab].csv")) == ["a.csv", "b.csv"]
    assert names(tree, expand(f"{tree}/su*")) == []  # a folder is no file
    assert expand(f"{tree}/*.parquet") == []


def test_relative_sources_give_absolute_paths(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert expand("a.csv") == [str(tree / "a.csv")]
    assert expand("[ab].csv") == [str(tree / "a.csv"), str(tree / "b.csv")]


def test_hidden_file_that_is_named_is_meant(tree):
    assert expand(tree / ".hidden.csv") == [str(tree / ".hidden.csv")]
    assert names(tree, expand(tree / "sub" / ".git")) == ["sub/.git/d.csv"]


def test_missing_file_is_an_error_that_names_it(tree):
    with pytest.raises(MissingInputError, match="nowhere.csv"):
        expand(tree / "nowhere.csv")


def test_name_that_is_also_a_pattern(tree):
    (tree / "x[1].csv").write_text("x")
    assert expand(tree / "x[1].csv") == [str(tree / "x[1].csv")]
    (tree / "x1.csv").write_text("y")
    with pytest.raises(InputFailure, match="as a pattern"):
        expand(tree / "x[1].csv")


def test_links_to_folders_are_followed_and_circles_end(tree, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "f.csv").write_text("f")
    (tree / "link").symlink_to(tmp_path / "far")
    (tree / "sub" / "up").symlink_to(tree)
    (tmp_path / "far" / "self").symlink_to(tmp_path / "far")
    (tree / "dangling").symlink_to(tmp_path / "gone")
    assert names(tree, expand(tree)) == [
        "a.csv", "b.csv", "link/f.csv", "p10.csv", "p9.csv", "sub/c.csv", "sub/deep/e.txt",
    ]  # fmt: skip


def test_folder_that_cannot_be_listed_is_a_failure(tree, monkeypatch):
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("deep"):
            raise PermissionError(13, "no", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(InputFailure, match="deep cannot be read"):
        expand(tree)


def test_pipe_is_left_out_of_a_folder_and_refused_by_itself(tree):
    os.mkfifo(tree / "pipe")
    assert str(tree / "pipe") not in expand(tree)
    with pytest.raises(InputFailure, match="no plain file"):
        expand(tree / "pipe")


def test_folders_that_link_to_each_other_are_listed_so_often_and_no_more(tmp_path):
    """Eleven of them can be walked through in millions of ways, each with names of its own."""
    folders = [tmp_path / f"f{number}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
        (folder / "data.csv").write_text("x")
    for folder in folders:
        for other in folders:
            if other != folder:
                (folder / other.name).symlink_to(other)
    with pytest.raises(InputFailure, match="again and again"):
        expand(tmp_path)
