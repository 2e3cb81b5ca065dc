"""Recipes that are damaged: nothing of them is run, people are told, and running the program again helps."""

import sqlite3
import zlib

import pytest
from tests.dialects.polars.projects import PolarsProject, simple
from tests.recipes.projects import reasons_of

from nectar.catalog.check import check


@pytest.fixture
def project(tmp_path):
    return PolarsProject(tmp_path)


def change_parts(project, change):
    """Parts of recipes are others, under the same digests; None: they are gone."""
    with project.catalog() as catalog:
        path = catalog.index.path
    with sqlite3.connect(path) as connection:
        for identity, content in connection.execute("SELECT identity, content FROM recipe_parts").fetchall():
            new = change(content)
            if new is None:
                connection.execute("DELETE FROM recipe_parts WHERE identity = ?", (identity,))
            elif new != content:
                connection.execute("UPDATE recipe_parts SET content = ? WHERE identity = ?", (new, identity))
    connection.close()


def planted(mark):
    """The text of the module does something else first."""

    def change(content):
        text = zlib.decompress(content)
        return zlib.compress(b"open(%r, 'w').close()\n" % str(mark) + text) if b"def change" in text else content

    return change


DAMAGES = {
    "a flipped bit in each part": lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
    "parts cut off": lambda content: content[:-3],
    "other parts": lambda content: zlib.compress(b"something else"),
    "parts missing": lambda content: None,
}


def found(project, **how):
    with project.catalog() as catalog:
        return [finding for finding in check(catalog, thorough=True, **how) if finding.what == "damaged recipe"]


def test_nothing_of_a_changed_module_is_run(project, tmp_path):
    _, key, _ = simple(project)
    mark = tmp_path / "executed"
    change_parts(project, planted(mark))
    (reason,) = reasons_of(project, key)
    assert "parts are damaged" in reason
    assert "run the program" in reason
    assert not mark.exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_found_and_mended(project, damage):
    _, key, before = simple(project)
    assert found(project) == []
    change_parts(project, DAMAGES[damage])
    (reason,) = reasons_of(project, key)
    assert "recipe" in reason
    findings = found(project)
    assert any(key.hex() in finding.detail for finding in findings)
    assert len(found(project, repair=True)) == len(findings)
    assert found(project) == []
    project.run()
    key_again, _ = project.evict_one()
    assert key_again == key
    done, after = project.rebuild(key)
    assert done.made
    assert after.equals(before)


def test_a_program_that_runs_again_has_a_whole_recipe_again(project):
    _, key, before = simple(project)
    change_parts(project, DAMAGES["a flipped bit in each part"])
    project.run()
    project.evict_one()
    done, after = project.rebuild(key)
    assert done.made
    assert after.equals(before)


def test_names_of_damaged_recipes_are_told(project):
    _, key, _ = simple(project)
    with project.catalog() as catalog:
        catalog.bind("team/a", key)
    change_parts(project, DAMAGES["parts missing"])
    assert any("named team/a" in finding.detail for finding in found(project))
    assert "damaged recipe" in project.nectar("check", "--thorough", fails=True).stdout
