"""One hook of the process hears what all who listen ask for."""

import subprocess
import sys

from nectar.keys import audit

COUNTED = """
import sys
installed, install = [], sys.addaudithook
sys.addaudithook = lambda hook: (installed.append(hook), install(hook))
import fractions, nectar
nectar.fingerprint(fractions.gcd if hasattr(fractions, "gcd") else fractions.Fraction.limit_denominator)
before = len(installed)
memo = nectar.memo(lambda number: number + 1)
memo(1)
from nectar.observation import hook
print(before, len(installed), hook._installed)
"""


def test_a_process_has_one_hook_however_many_listen(tmp_path):
    options = {"capture_output": True, "text": True, "check": True, "cwd": tmp_path}
    ended = subprocess.run([sys.executable, "-c", COUNTED], **options, env={"NECTAR_HOME": str(tmp_path / "home")})
    assert ended.stdout.split() == ["1", "1", "True"]


def test_who_listens_hears_what_was_asked_for():
    heard = []
    audit.listen({"nt.event": heard.append})
    sys.audit("nt.event", 1, 2)
    sys.audit("nt.other", 3)
    assert heard == [(1, 2)]
