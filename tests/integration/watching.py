"""Watches a store while others use it: python -m tests.integration.watching HOME SECONDS.

While it looks at the files it holds the lock of the index, so that nobody announces anything new meanwhile. Its last
line is the most it saw, as JSON.
"""

import json
import os
import sqlite3
import sys
import time
from contextlib import suppress

from tests.integration.hammering import open_here


def bytes_at_one_moment(home: str) -> int:
    """Bytes of all files in the store."""
    connection = sqlite3.connect(os.path.join(home, "catalog.db"), timeout=60, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        sizes = {}
        for place, _, names in os.walk(os.path.join(home, "results")):
            for name in names:
                with suppress(FileNotFoundError):  # deletion goes on
                    status = os.stat(os.path.join(place, name))
                    sizes[status.st_ino] = status.st_size  # renamed while we look, it would be seen twice
        return sum(sizes.values())
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def main(home: str, seconds: str) -> None:
    """Looks again and again, and says what it saw."""
    catalog = open_here(home)
    samples = by_rows = on_disk = 0
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        by_rows = max(by_rows, catalog.usage().total)
        on_disk = max(on_disk, bytes_at_one_moment(home))
        samples += 1
        time.sleep(0.03)
    catalog.close()
    print(json.dumps({"samples": samples, "by_rows": by_rows, "on_disk": on_disk}))


if __name__ == "__main__":
    main(*sys.argv[1:])
