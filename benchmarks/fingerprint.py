"""How long a fingerprint takes, beside what other tools take for the same functions, and what real code is refused.

    python benchmarks/fingerprint.py [--repeats N] [--quick]

Prints tables for people, then one line of JSON with the figures. Cold: Nectar has forgotten everything it knew of any
function. Fresh: the first function a new process asks about. Warm: asked again, nothing changed. Peers are asked as
people use them; a peer that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.peers import PEERS, measure_peer  # noqa: E402
from benchmarks.timing import functions, timed  # noqa: E402

from benchmarks import real_code  # noqa: E402 - found by way of the line above

CHAIN, FAN = "chain of 50", "fan of 50"
XORQ_HOME = ROOT / ".venv-xorq"
SHOWN_REASONS = 6


# one tool, one function


def measure_here(repeats: int) -> dict[str, dict[str, float | None]]:
    """Microseconds by tool and function, for every tool of this environment."""
    import nectar
    from nectar.keys import outcome
    from nectar.keys.bytecode import template

    def forget() -> None:
        outcome.forget()
        template._templates.clear()

    asked = functions()
    table: dict[str, dict[str, float | None]] = {"nectar cold": {}, "nectar warm": {}}
    for name, function in asked.items():
        timed(nectar.fingerprint, function, 1)  # tables that are made once for a process do not belong to a function
        table["nectar cold"][name] = timed(nectar.fingerprint, function, repeats, forget)
        table["nectar warm"][name] = timed(nectar.fingerprint, function, repeats * 4)
    for peer in PEERS:
        table.update(measure_peer(peer, repeats))
    return table


# in other processes


def run(python: str, script: str, *arguments: str, path: Path = ROOT, limit: float = 120) -> str | None:
    """What a process prints as its last line; None if it fails."""
    # -P: the folder of the script, in which there is a polars.py, is not where modules are looked for
    command = [python, "-P", str(ROOT / "benchmarks" / script), *arguments]
    # compiled code is kept between processes, as it is for everybody else
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, cwd=path, env=environment, capture_output=True, text=True, timeout=limit, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout.strip().rpartition("\n")[2]


def measure_fresh(names: list[str]) -> dict[str, float | None]:
    """Microseconds for the first fingerprint of a process, imports left out; a process for each function."""
    result: dict[str, float | None] = {}
    for name in [names[0], *names]:  # the first one twice: before that, code may not be compiled yet
        line = run(sys.executable, "fingerprint.py", "--fresh", name)
        result[name] = float(line) if line and line != "None" else None
    return result


def first_of_process(name: str) -> float | None:
    import nectar
    import nectar.keys.api  # loading code is part of starting a process

    return timed(nectar.fingerprint, functions()[name], 1)


def xorq_python() -> tuple[str | None, str]:
    """The interpreter of an environment with xorq, made once; or None and the reason."""
    python = XORQ_HOME / "bin" / "python"
    if not python.exists():
        print(f"Setting up {XORQ_HOME.name} for xorq (once)", file=sys.stderr)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(XORQ_HOME)], check=True, capture_output=True, timeout=120)
        except (subprocess.SubprocessError, OSError) as error:
            return None, f"no environment could be made: {error}"
    for attempt in range(2):
        known = subprocess.run(
            [str(python), "-c", "import xorq, pandas, polars, numpy"], capture_output=True, check=False
        )
        if known.returncode == 0:
            return str(python), ""
        if attempt == 0:
            install = [str(python), "-m", "pip", "install", "-qq", "xorq", "pandas", "polars", "numpy"]
            try:
                subprocess.run(install, capture_output=True, timeout=600, check=False)
            except (subprocess.SubprocessError, OSError) as error:
                return None, f"it did not install: {type(error).__name__}"
    return None, "it did not install"


# whether a tool sees that a helper changed

_CALLER = "from helper import clean\n\n\ndef program(text):\n    return clean(text)\n"
_HELPERS = ("def clean(text):\n    return text.strip()\n", "def clean(text):\n    return text.strip().lower()\n")


def sees_helpers(tool: str, python: str) -> str:
    """ "yes", "no" or "fails": whether the name a tool gives a function changes with a helper in another module."""
    said = []
    for helper in _HELPERS:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "helper.py").write_text(helper)
            (Path(folder) / "program.py").write_text(_CALLER)
            said.append(run(python, "peers.py", tool, "--program", folder))
    if None in said:
        return "fails"
    return "yes" if said[0] != said[1] else "no"


# tables


def spread(times: list[float]) -> tuple[float, float, float]:
    """Median, ninth decile and maximum."""
    last = quantiles(times, n=10)[-1] if len(times) > 1 else times[0]
    return median(times), min(last, max(times)), max(times)


def print_times(table: dict[str, dict[str, float | None]], seen: dict[str, str]) -> None:
    tools = list(table)
    width = max(map(len, functions()))
    print(f"{'microseconds':<{width}}", *(f"{tool:>20}" for tool in tools))
    for name in functions():
        cells = (table[tool].get(name) for tool in tools)
        print(f"{name:<{width}}", *(f"{'cannot' if cell is None else format(cell, ',.0f'):>20}" for cell in cells))
    print()
    base = median(value for value in table["nectar warm"].values() if value is not None)
    heads = ("median", "p90", "max", "x nectar warm", "failed", "sees helpers")
    print(f"{'microseconds':<24}", *(f"{head:>14}" for head in heads))
    for tool in tools:
        known = [value for value in table[tool].values() if value is not None]
        if not known:
            print(f"{tool:<24} nothing could be measured")
            continue
        figures = (f"{figure:>14,.0f}" for figure in spread(known))
        failed = len(table[tool]) - len(known)
        sees = seen.get(tool.removesuffix(" cold").removesuffix(" warm").removesuffix(" fresh"), "")
        print(f"{tool:<24}", *figures, f"{median(known) / base:>14.1f}", f"{failed:>14}", f"{sees:>14}")
    print()


def print_real_code(found: dict[str, list[real_code.Finding]]) -> None:
    heads = ("number", "refused", "share", "crashed", "cold us", "cold max", "warm us", "warm max")
    print(f"{'real code':<28}", *(f"{head:>10}" for head in heads))
    for package, findings in found.items():
        for kind in real_code.KINDS:
            chosen = [finding for finding in findings if finding.kind == kind]
            if not chosen:
                continue
            cold, warm = [f.cold * 1e6 for f in chosen], [f.warm * 1e6 for f in chosen]
            refused = sum(f.result != real_code.ACCEPTED for f in chosen)
            crashed = sum(f.result == real_code.CRASHED for f in chosen)
            numbers = (median(cold), max(cold), median(warm), max(warm))
            print(
                f"{package + ', ' + kind:<28}",
                f"{len(chosen):>10}{refused:>11}{refused / len(chosen):>11.1%}{crashed:>11}",
                *(f"{number:>10,.0f}" for number in numbers),
            )
    print("\nwhy functions are refused (one may have several reasons)")
    for package, findings in found.items():
        reasons = real_code.grouped([f for f in findings if f.kind == real_code.FUNCTION])
        print(f"{package:<16}", ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(SHOWN_REASONS)))
    print()


def plain(tool: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in tool)


def figures_of(
    runs: list[dict[str, dict[str, float | None]]], seen: dict[str, str], found: dict[str, list[real_code.Finding]]
) -> dict[str, object]:
    """What the JSON line holds: medians over the runs, and how far the runs lie apart."""
    figures: dict[str, object] = {"functions": len(functions()), "runs": len(runs)}
    for tool in runs[0]:
        if any(all(value is None for value in run[tool].values()) for run in runs):
            continue  # it failed in this run
        per_run = [spread([value for value in run[tool].values() if value is not None]) for run in runs]
        name = plain(tool.removeprefix("nectar "))
        figures[f"{name}_median_us"] = round(median(each[0] for each in per_run), 1)
        figures[f"{name}_median_us_lowest"] = round(min(each[0] for each in per_run), 1)
        figures[f"{name}_median_us_highest"] = round(max(each[0] for each in per_run), 1)
        figures[f"{name}_p90_us"] = round(median(each[1] for each in per_run), 1)
        figures[f"{name}_max_us"] = round(median(each[2] for each in per_run), 1)
        figures[f"{name}_failed"] = sum(value is None for value in runs[0][tool].values())
        for label, program in (("chain50", CHAIN), ("fan50", FAN)):
            values = [run[tool].get(program) for run in runs]
            if None not in values:
                figures[f"{name}_{label}_us"] = round(median(values), 1)  # type: ignore[type-var]
    for tool, sees in seen.items():
        figures[f"{plain(tool)}_sees_changed_helper"] = sees
    for package, findings in found.items():
        for kind in real_code.KINDS:
            chosen = [finding for finding in findings if finding.kind == kind]
            figures[f"{package}_{plain(kind)}"] = len(chosen)
            figures[f"{package}_{plain(kind)}_share_refused"] = round(real_code.share_refused(chosen), 4)
        figures[f"{package}_crashed"] = sum(finding.result == real_code.CRASHED for finding in findings)
    return figures


def report(repeats: int, runs: int, quick: bool) -> None:
    measured = [measure_here(repeats) for _ in range(runs)]
    python, reason = (None, "left out") if quick else xorq_python()
    if not quick:
        fresh = measure_fresh(list(functions()))
        for run_ in measured:
            run_["nectar fresh"] = fresh
    if python is not None:
        line = run(python, "peers.py", "xorq", "--repeats", str(repeats), limit=600)
        if line:
            for run_ in measured:
                run_["xorq"] = json.loads(line)
        else:
            reason = "it failed"
    absent = [peer for peer in PEERS if peer != "xorq" and peer not in measured[0]]
    tools = ["nectar", *(peer for peer in PEERS if peer in measured[0])]
    seen = {tool: sees_helpers(tool, python if tool == "xorq" and python else sys.executable) for tool in tools}
    found = {package: real_code.examine(package) for package in real_code.PACKAGES if real_code.is_installed(package)}
    print_times(measured[-1], seen)
    print_real_code(found)
    if "xorq" not in measured[0]:
        print(f"xorq was not measured: {reason}")
    for peer in absent:
        print(f"{peer} was not measured: it is not installed")
    print(json.dumps(figures_of(measured, seen, found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one environment and no other processes but a few")
    parser.add_argument("--fresh", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.fresh:
        print(first_of_process(chosen.fresh))
    else:
        report(chosen.repeats, chosen.runs, chosen.quick)


if __name__ == "__main__":
    main()
