import subprocess
import sys

import pytest


def test_a_store_without_tables_loads_no_data_library_and_no_fsspec(tmp_path):
    code = (
        "import sys\n"
        "from nectar.store.store import Store\n"
        f"store = Store({str(tmp_path)!r})\n"
        "with store.stage(store.new_location(b'k')) as staging:\n"
        "    staging.write_object([1]); staging.publish()\n"
        "print(*[name for name in ('fsspec', 'numpy', 'pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_keeping_a_polars_frame_does_not_import_pandas(tmp_path):
    """It takes half a second, and changes what is compared before and after a query that runs meanwhile."""
    pytest.importorskip("polars")
    code = (
        "import sys\n"
        "import polars as pl\n"
        "from nectar.store.store import Store\n"
        f"store = Store({str(tmp_path)!r})\n"
        "with store.stage(store.new_location(b'k')) as staging:\n"
        "    staging.write_table(pl.DataFrame({'a': [1]})); staging.publish()\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
