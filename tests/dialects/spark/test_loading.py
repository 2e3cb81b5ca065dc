"""What a first look at a Spark query loads, seen in a fresh interpreter: every program waits for it."""

import subprocess
import sys

import pytest

pytest.importorskip("pysail", reason="Sail is not installed: make test-sail")
pytestmark = pytest.mark.small

LOOK = """
import sys
import pyspark.sql.connect.session
import nectar.dialects.spark.looking, nectar.catalog.embedded
print(*sys.modules)
"""
# What only keeping, growing, names, explaining and Python functions need.
LATER = (
    "nectar.dialects.spark.incremental", "nectar.dialects.spark.saving", "nectar.dialects.spark.explain",
    "nectar.dialects.spark.recipe", "nectar.datasets", "nectar.recipes.recipe", "nectar.rewrite.cost",
    "nectar.report.explanation", "nectar.keys.walk", "nectar.keys.outcome", "nectar.model.lineage",
    "nectar.store.commit", "nectar.store.read", "nectar.catalog.handover", "pyarrow.parquet",
)  # fmt: skip


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    script = tmp_path_factory.mktemp("loading") / "look.py"
    script.write_text(LOOK)
    return subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.split()


def test_few_modules_are_loaded(loaded):
    assert len([each for each in loaded if each.startswith("nectar.")]) <= 163


def test_what_is_only_needed_later_is_loaded_later(loaded):
    assert [each for each in loaded if each in LATER] == []
