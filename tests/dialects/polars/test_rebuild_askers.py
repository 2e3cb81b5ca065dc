"""Many who ask for the same deleted result, processes that crash, and the command."""

import json
import os
import subprocess
import sys
import textwrap
import time

import pytest
from tests.dialects.polars.projects import PolarsProject, simple
from tests.recipes.projects import reasons_of


@pytest.fixture
def project(tmp_path):
    return PolarsProject(tmp_path)


# many askers, and crashes


ASKER = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path
    from nectar.catalog.embedded import open_catalog
    from nectar.errors import RebuildError
    from nectar.recipes.rebuild import rebuild
    from nectar.settings import Settings
    home, key, threads = Path(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
    settings = Settings(home=home, reserve=0)
    catalog = open_catalog(settings)
    def ask(_):
        try:
            return rebuild(catalog, key, settings).rows
        except RebuildError as error:
            return error.reasons[0]
    with ThreadPoolExecutor(threads) as pool:
        print(*pool.map(ask, range(threads)), sep="\\n")
"""


def ask_in_processes(project, key, processes, threads):
    script = project.root / "asker.py"
    script.write_text(textwrap.dedent(ASKER))
    command = [sys.executable, str(script), str(project.settings.home), key.hex(), str(threads)]
    asking = [
        subprocess.Popen(command, env=project.environment, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    return [line for each in asking for line in each.communicate()[0].splitlines()]


def counting(project, then="return x"):
    counter = project.root / "counter"
    function = (
        f"@nectar.pure\ndef change(x):\n    if x == 0:\n        with open({str(counter)!r}, 'a') as file:\n"
        f"            file.write('x')\n        time.sleep(1)\n    {then}\n"
    )
    _, key, before = simple(project, head="import nectar\nimport time\nimport os\n", function=function)
    assert counter.read_text() == "x"
    counter.write_text("")
    return counter, key, before


def test_fifty_askers_in_five_processes_get_one_rebuild(project):
    counter, key, before = counting(project)
    answers = ask_in_processes(project, key, 5, 10)
    assert answers == ["50"] * 50
    assert counter.read_text() == "x"


def test_an_error_is_told_to_everybody_who_asked(project):
    counter, key, before = counting(project)
    then = project.root / "data" / "a.parquet"
    then.unlink()
    answers = ask_in_processes(project, key, 2, 5)
    assert answers == [f"the file {then} is gone"] * 10
    assert counter.read_text() == ""


def test_after_a_crash_the_next_asker_rebuilds(project):
    counter, key, before = counting(project)
    script = project.root / "asker.py"
    script.write_text(textwrap.dedent(ASKER))
    command = [sys.executable, str(script), str(project.settings.home), key.hex(), "1"]
    asking = subprocess.Popen(command, env=project.environment, start_new_session=True)
    for _ in range(600):
        if counter.read_text():
            break
        time.sleep(0.05)
    os.killpg(asking.pid, 9)  # in the middle of the rebuild
    asking.wait()
    assert not project.keys()
    done, after = project.rebuild(key)
    assert done.made
    assert after.equals(before)
    assert counter.read_text() == "xx"


def test_a_process_that_breaks_down_is_told_and_the_next_one_rebuilds(project):
    marker = project.root / "marker"
    function = (
        f"@nectar.pure\ndef change(x):\n    if os.path.exists({str(marker)!r}):\n"
        "        os.kill(os.getpid(), 9)\n    return x\n"
    )
    _, key, before = simple(project, head="import os\nimport nectar\n", function=function)
    marker.touch()
    (reason,) = reasons_of(project, key)
    assert reason == "the process that ran it ended with -9"
    marker.unlink()
    _, after = project.rebuild(key)
    assert after.equals(before)


# the command


def test_the_command_rebuilds_by_key_and_by_name(project):
    _, key, before = simple(project)
    with project.catalog() as catalog:
        catalog.bind("team/things", key)
    done = json.loads(project.nectar("rebuild", key.hex(), "--json").stdout)
    assert (done["rebuilt"], done["rows"], done["difference"]) == (True, 50, "")
    assert "nothing had to be rebuilt" in project.nectar("rebuild", key.hex()[:10]).stdout
    project.evict()
    assert "team/things (" in project.nectar("rebuild", "team/things").stdout
    project.evict()
    assert "rebuild   comes back when it is read" in project.nectar("show", "team/things").stdout
    assert json.loads(project.nectar("show", "team/things", "--json").stdout)["rebuildable"]
    assert "team/things@1 (" in project.nectar("rebuild", "team/things@1").stdout
    project.evict()
    assert "was rebuilt" in project.nectar("rebuild", key.hex()[:10]).stdout, "also of a key, its first digits do"
    project.evict()
    (project.root / "data" / "a.parquet").unlink()
    failed = project.nectar("rebuild", "team/things", fails=True)
    assert failed.returncode == 1
    assert "a.parquet is gone" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert project.nectar("rebuild", "abc", fails=True).returncode == 1
