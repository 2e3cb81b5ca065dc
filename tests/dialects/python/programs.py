"""Programs of several modules, written to a folder and run by processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src"

# What a program ends with: the outcome of every memoised call, in order.
OUTCOMES = """
def outcomes(call, *args, **kwargs):
    import nectar
    value = call(*args, **kwargs)
    return [value, *(f"{part.name.rpartition('.')[2]} {part.outcome}" for part in nectar.last_run().parts)]
"""


class Program:
    """Modules in a folder of their own, and a home for what is kept."""

    def __init__(self, folder: Path, home: Path, **environment: str) -> None:
        self.folder, self.home = folder, home
        self.environment = environment
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, **modules: str) -> None:
        """Each module has this text from now on."""
        for name, text in modules.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def started(self, script: str, *args: str, **environment: str) -> subprocess.Popen[str]:
        """A process that runs a module as a script."""
        known = {name: value for name, value in os.environ.items() if not name.startswith("NECTAR_")}
        chosen = {"PYTHONPATH": str(SOURCE), "NECTAR_HOME": str(self.home), "NECTAR_RESERVE": "0"}
        chosen["NECTAR_OVERHEAD"] = "unlimited"
        return subprocess.Popen(
            [sys.executable, "-X", "utf8", f"{script}.py", *args], cwd=self.folder, text=True,
            env={**known, "PYTHONDONTWRITEBYTECODE": "1", **chosen, **self.environment, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def output(self, script: str, *args: str, **environment: str) -> str:
        """What the script prints; it must succeed."""
        return ended(self.started(script, *args, **environment))[0]

    def told(self, script: str, *args: str, **environment: str):
        """What the script prints as JSON on its last line."""
        return json.loads(self.output(script, *args, **environment).splitlines()[-1])


def ended(process: "subprocess.Popen[str]", limit: float = 60.0) -> tuple[str, str]:
    """Output and errors of a process that must succeed, and must not hang."""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it hangs\n{out}\n{err}") from None
    assert process.returncode == 0, f"exit code {process.returncode}\n{out}\n{err}"
    return out, err
