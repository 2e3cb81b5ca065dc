"""The benchmark of growing files runs, and measures what it says."""

import pytest

from benchmarks import incremental_files


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_figures_of_a_small_file(monkeypatch, form):
    monkeypatch.setattr(incremental_files, "QUIET", 0)
    monkeypatch.setattr(incremental_files, "BLOCK", 2000)
    found = incremental_files.figures(megabytes=0.2, appends=1, form=form)
    assert 0.2 <= found["file_megabytes"] < 0.5
    assert found["append_seconds"] > 0
    assert found["recomputed_seconds"] > 0
