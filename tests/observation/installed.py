"""Libraries that are installed for a test, as an installer leaves them."""

import base64
import hashlib
import importlib
import sys
import textwrap


def install(tmp_path, monkeypatch, name, texts):
    """The module of this name, of a distribution that consists of these files."""
    site = tmp_path / "lib" / "site-packages"
    lines = []
    for file, text in texts.items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        content = path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{file},sha256={digest},{len(content)}")
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    return importlib.import_module(name)


def forget(name):
    """The next import of the library loads it anew."""
    for each in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[each]
