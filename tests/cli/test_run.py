"""`nectar run` and `nectar explain`: a program runs as under Python, and one line says what was reused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import nectar

REPORT = """\
import sys
import polars as pl

pages = pl.scan_parquet(sys.argv[1] + "/*.parquet").group_by("page").agg(pl.len())
print(pages.sort("page").collect().to_dicts())
"""
FIRST = "nectar: 0 of 1 query from cache, 1 kept for next time"


@pytest.fixture
def here(tmp_path):
    (tmp_path / "clicks").mkdir()
    pl.DataFrame({"page": ["a", "b", "a"]}).write_parquet(tmp_path / "clicks" / "day.parquet")
    (tmp_path / "report.py").write_text(REPORT, encoding="utf-8")
    return tmp_path


def environment(folder, **settings):
    source = str(Path(nectar.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "NECTAR_HOME": str(folder / "home"), "NECTAR_RESERVE": "0", **settings}


def run(folder, *arguments, command="run", **settings):
    return subprocess.run(
        [sys.executable, "-m", "nectar.cli", command, *arguments], cwd=folder, env=environment(folder, **settings),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def python(folder, *arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )


def program(folder, text, name="program.py"):
    (folder / name).write_text(text, encoding="utf-8")
    return name


def last_line(done):
    return done.stderr.splitlines()[-1]


def test_the_second_run_reuses_the_first(here):
    plain = python(here, "report.py", "clicks")
    first = run(here, "report.py", "clicks")
    second = run(here, "report.py", "clicks")
    assert plain.stdout == first.stdout == second.stdout
    assert (first.returncode, second.returncode) == (0, 0)
    assert last_line(first).startswith(FIRST)
    assert re.fullmatch(
        r"nectar: 1 of 1 query from cache, .* saved; Nectar took [\d.,]+ (us|µs|ms|s)", last_line(second)
    )
    assert len(second.stderr.splitlines()) == 1


def test_no_cache_and_refresh(here):
    run(here, "report.py", "clicks")
    off = run(here, "--no-cache", "report.py", "clicks")
    anew = run(here, "--refresh", "report.py", "clicks")
    assert off.stderr == "nectar: off: nothing was reused or kept\n"
    assert last_line(anew).startswith(FIRST)
    assert off.stdout == anew.stdout


def test_off_in_the_environment(here):
    assert run(here, "report.py", "clicks", NECTAR_OFF="1").stderr == "nectar: off: nothing was reused or kept\n"


def test_a_program_without_queries(here):
    done = run(here, program(here, "print('hello')"))
    assert (done.stdout, done.returncode) == ("hello\n", 0)
    assert last_line(done) == "nectar: nothing to reuse: no query and no memoised function ran"


def test_memoised_functions_count_too(here):
    name = program(here, "import nectar\n@nectar.memo\ndef f(x):\n    return x + 1\nprint(f(1), f(2))\n")
    assert last_line(run(here, name)).startswith("nectar: 0 of 2 calls from cache, 2 kept for next time")
    assert last_line(run(here, name)).startswith("nectar: 2 of 2 calls from cache, ")


def test_a_program_that_enables_nectar_itself_is_counted(here):
    text = "import nectar\nnectar.enable(home='other')\n" + REPORT + "nectar.disable()\n"
    assert last_line(run(here, program(here, text), "clicks")).startswith(FIRST)
    assert (here / "other").is_dir()


SEES = """\
import json, os, sys, __main__
print(json.dumps([sys.argv, __name__, __file__, sys.path[0], __main__.__file__, __spec__ is None,
                  sys.modules["__main__"] is __main__, __builtins__.__name__, os.getcwd()]))
"""


@pytest.mark.parametrize("where", ["program.py", "folder/program.py"])
def test_the_program_sees_what_it_would_see_under_python(here, where):
    (here / "folder").mkdir()
    program(here, SEES, where)
    assert json.loads(run(here, where, "-x", "--json", "a b").stdout) == json.loads(
        python(here, where, "-x", "--json", "a b").stdout
    )


def test_modules_beside_the_program_are_found(here):
    program(here, "VALUE = 7", "beside.py")
    assert run(here, program(here, "import beside; print(beside.VALUE)")).stdout == "7\n"


def test_a_module(here):
    (here / "package").mkdir()
    program(here, "", "package/__init__.py")
    program(here, "import sys\nprint(sys.argv, __name__, __package__)\n", "package/__main__.py")
    assert run(here, "-m", "package", "-v").stdout == python(here, "-m", "package", "-v").stdout


def test_a_folder_with_a_main(here):
    (here / "app").mkdir()
    program(here, "import part; print(part.X)", "app/__main__.py")
    program(here, "X = 3", "app/part.py")
    assert run(here, "app").stdout == "3\n"


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('oh no')", 1, "oh no\n"),
        ("raise SystemExit(True)", 1, ""),
    ],
)
def test_exit_codes_are_the_programs_own(here, end, code, told):
    name = program(here, f"import sys\n{end}\n")
    done, plain = run(here, name), python(here, name)
    assert done.returncode == plain.returncode == code
    assert done.stderr.rpartition("nectar: ")[0] == plain.stderr == told


RAISES = {
    "an error": "def f():\n    return 1 / 0\nf()\n",
    "a chain": "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('b') from error\n",
    "wrong syntax": "def f(:\n",
    "a query": "import polars as pl\npl.LazyFrame({'a': [1]}).select('nope').collect()\n",
    "a hook": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__, file=sys.stderr)\n1 / 0\n",
}


@pytest.mark.parametrize("text", RAISES.values(), ids=RAISES.keys())
def test_tracebacks_look_as_under_python(here, text):
    name = program(here, text)
    done, plain = run(here, name), python(here, name)
    assert done.returncode == plain.returncode == 1
    assert done.stderr.rpartition("nectar: ")[0] == plain.stderr


def test_an_interrupt(here):
    name = program(here, "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "nectar.cli", "run", name], cwd=here, env=environment(here),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "KeyboardInterrupt" in errors
    assert "nectar/cli" not in errors


def test_the_line_is_the_last_whatever_the_program_does_at_its_end(here):
    text = (
        "import atexit, sys, threading, time\n"
        "atexit.register(lambda: print('at exit', file=sys.stderr))\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('thread', file=sys.stderr))).start()\n"
    )
    lines = run(here, program(here, text)).stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["thread", "at exit", "nectar"]


def test_processes_of_the_program_work(here):
    text = (
        "import multiprocessing\n"
        "def double(x):\n    return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    assert run(here, program(here, text)).stdout == "[2, 4]\n"


def test_wrong_usage(here):
    assert run(here).returncode == 2
    missing = run(here, "missing.py")
    assert missing.returncode == 1
    assert "there is no file 'missing.py'" in missing.stderr


def test_settings_that_mean_nothing(here):
    done = run(here, "report.py", "clicks", NECTAR_BUDGET="much")
    assert done.returncode == 0, "the program runs all the same"
    assert "budget" in done.stderr


def test_calls_that_are_refused_or_raise_are_counted_and_named_in_all_runs(here):
    text = (
        "import nectar, time\n@nectar.memo\ndef now(n):\n    return time.time() + n\n"
        "@nectar.memo\ndef fails(n):\n    raise ValueError(n)\n"
        "for n in range(3):\n    now(n)\n    try:\n        fails(n)\n    except ValueError:\n        pass\n"
    )
    name = program(here, text)
    for _ in range(2):
        told = last_line(run(here, name, NECTAR_OVERHEAD="unlimited"))
        assert told.startswith(
            "nectar: 0 of 3 calls from cache, nothing kept; 3 calls of program.now cannot be kept; "
            "3 calls of program.fails failed; Nectar took"
        )


def test_a_child_that_was_forked_tells_no_totals(here):
    text = "import os, sys, nectar\nf = nectar.memo(lambda x: x)\nf(1)\nif os.fork() == 0:\n    sys.exit()\nos.wait()\n"
    done = run(here, program(here, text))
    assert done.stderr.count("nectar: ") == 1


# explain


def test_explain_shows_a_tree_for_each_query(here):
    first = run(here, "report.py", "clicks", command="explain")
    second = run(here, "--explain", "report.py", "clicks")
    assert first.stdout == second.stdout == python(here, "report.py", "clicks").stdout
    assert first.stderr.startswith("nothing of it is known: it runs for the first time\nsort ")
    assert second.stderr.startswith("all of it is known: about ")
    assert last_line(second).startswith("nectar: 1 of 1 query from cache")


def test_explain_names_what_changed(here):
    run(here, "report.py", "clicks")
    program(here, REPORT.replace("pl.len()", "pl.len().alias('visits')"), "report.py")
    told = run(here, "report.py", "clicks", command="explain").stderr
    assert 'group_by page: was len(), is len().alias("visits")' in told


def test_explain_as_json(here):
    done = run(here, "--json", "report.py", "clicks", command="explain")
    record = json.loads(done.stderr.splitlines()[0])
    assert record["reason"] == "it runs for the first time"
    assert [part["becomes"] for part in record["parts"]] == ["computed"] * 3
    assert record["seconds_saved"] == 0
