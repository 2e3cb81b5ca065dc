"""Names of files among many other texts: in containers, frames and arrays."""

import os
import sys

import pytest

import nectar
from nectar import session
from nectar.observation.named import paths_in
from nectar.observation.texts import texts_in, texts_of

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

MANY = 1000
HOLDERS = {
    "list": list,
    "tuple": tuple,
    "dict": lambda texts: dict(enumerate(texts)),
    "nested": lambda texts: {"a": [texts]},
    "array": np.array,
    "array of objects": lambda texts: np.array(texts, dtype=object),
    "pandas series": pd.Series,
    "pandas frame": lambda texts: pd.DataFrame({"n": range(len(texts)), "t": texts}),
    "pandas index": lambda texts: pd.DataFrame({"n": 1.5}, index=texts),
    "pandas categories": lambda texts: pd.Series(texts, dtype="category"),
    "series by label": lambda texts: pd.Series(texts, index=[each / 2 for each in range(len(texts))]),
    "polars series": lambda texts: pl.Series("t", texts),
    "polars frame": lambda texts: pl.DataFrame({"n": range(len(texts)), "t": texts}),
    "arrow": pa.array,
    "arrow table": lambda texts: pa.table({"t": texts}),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_files_that_many_texts_name_are_stood_for_by_their_folder(holder, tmp_path):
    paths = [str(tmp_path / f"{number}.csv") for number in range(MANY)]
    for path in paths:
        open(path, "w").close()
    held = HOLDERS[holder](paths)
    assert str(tmp_path) in paths_in(texts_in([held]))
    if type(held) in (list, dict):
        captured = lambda: held  # noqa: E731
        assert str(tmp_path) in paths_in(texts_of([captured]))
        space = {"held": held}
        exec("def f(): return held", space)
        assert str(tmp_path) in paths_in(texts_of([space["f"]]))


@pytest.mark.parametrize("holder", HOLDERS)
def test_ordinary_texts_name_nothing(holder):
    texts = [f"row {number}. / of many" for number in range(MANY - 4)] + [".", "/", "..", "./"]
    assert not [path for path in paths_in(texts_in([HOLDERS[holder](texts)])) if os.path.exists(path)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who opens a file")
@pytest.mark.filterwarnings("ignore::nectar.NectarWarning")
def test_what_native_code_reads_by_a_name_among_many_is_not_kept(tmp_path, enabled):
    def read_one(frame):
        return called(pl, "read_csv", frame["path"][700])["a"].to_list()

    def read_none(frame):
        return frame.height

    folder = tmp_path / "data"
    folder.mkdir()
    paths = [str(folder / f"{number}.csv") for number in range(MANY)]
    for path in paths:
        with open(path, "w") as file:
            file.write("a\n1\n")
    frame = pl.DataFrame({"path": paths})
    for function, kept in ((read_one, False), (read_none, True)):
        memo = nectar.memo(function)
        memo(frame)
        session.current().settle()
        assert memo.check_call_in_cache(frame) is kept, nectar.last_run().details()


def called(owner, name, *args):
    """Calls what only a name says, so that nobody sees beforehand what it is."""
    return getattr(owner, name)(*args)
