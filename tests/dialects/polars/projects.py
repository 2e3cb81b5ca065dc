"""A program of Polars whose results are deleted and made again."""

import polars as pl
from tests.recipes.projects import Project

QUERY = "import polars as pl\ndef query():\n    return %s\n"
MAIN = """
    import json
    import polars as pl
    from steps import query
    if __name__ == "__main__":
        print(json.dumps(query().collect().rows()))
"""


class PolarsProject(Project):
    """A program of Polars over a folder of files."""

    def values(self):
        """Runs the program, which prints nothing but the values of its result; returns those."""
        (values,) = self.run()
        return values

    def data(self, name="a.parquet", rows=50, start=0):
        path = self.root / "data" / name
        path.parent.mkdir(exist_ok=True)
        frame = pl.DataFrame({"a": range(start, start + rows), "g": [each % 3 for each in range(rows)]})
        frame.write_parquet(path)
        return path

    def keys(self):
        with self.catalog() as catalog:
            return {entry.about.partition(" ")[0]: entry.key for entry in catalog.index.entries()}

    def copy(self, opened):
        return opened.to_polars().clone()


def simple(project, *, function="def change(x):\n    return x + 1\n", head=""):
    """Runs a program of one function and deletes its result: its data, the key, and what it was."""
    data = project.data()
    project.write(
        steps=f"{head}import polars as pl\n{function}def query():\n"
        f"    scan = pl.scan_parquet({str(data)!r})\n"
        "    return scan.with_columns(pl.col('a').map_elements(change, return_dtype=pl.Int64))\n",
        main=MAIN,
    )
    project.run()
    return data, *project.evict_one()
