"""Formats of Pillow that its own plugins register at their first use are no change that a call has made."""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("PIL.Image")

PROGRAM = """
    import io, sys, warnings
    import nectar
    from PIL import Image, ImageFilter
    from nectar.keys.call import call_of, rest_of
    def size(shade):
        image = Image.new("RGB", (8, 8), (shade, 2, 3)).resize((4, 4)).filter(ImageFilter.BLUR)
        file = io.BytesIO()
        image.save(file, "PNG")
        return Image.open(io.BytesIO(file.getvalue())).size
    call = call_of(size, {"shade": 1})
    def rest():
        initialized, Image._initialized = Image._initialized, object()  # so that nothing is remembered of the module
        try:
            return rest_of(call, size, {"shade": 1})
        finally:
            Image._initialized = initialized
    before = rest()
"""


def said_by(program):
    """What a fresh process prints: plugins are imported once."""
    text = textwrap.dedent(PROGRAM) + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split()


def test_plugins_of_pillow_change_nothing():
    program = """
        size(1)
        print(rest() == before, len(Image.SAVE) > 3)
        Image.init()
        print(rest() == before, len(Image.SAVE) > 20)
    """
    assert said_by(program) == ["True"] * 4


CHANGES = (
    "Image.ID.append('NT')",
    "getattr(Image, 'register' + '_extension')('NT', '.nt')",
    "getattr(Image, 'register' + '_mime')('NT', 'image/nt')",
    "getattr(Image, 'register' + '_open')('NT', size)",
    "size(1); getattr(Image, 'register' + '_save')('PNG', size)",
    "getattr(Image, 'register' + '_decoder')('nt', type('NT', (), {'__module__': 'nt'}))",
)


@pytest.mark.parametrize("change", CHANGES)
def test_what_others_register_is_a_change(change):
    assert said_by(f"{change}\nprint(rest() == before)\n") == ["False"]


def test_the_first_call_is_kept(tmp_path):
    path = tmp_path / "program.py"
    body = PROGRAM.split("call = ")[0].replace("def size", "@nectar.memo\n    def size")
    path.write_text(textwrap.dedent(body) + "print(size(1)[0], 'being kept' in nectar.last_run().details())\n")
    settings = {**os.environ, "NECTAR_OVERHEAD": "unlimited", "NECTAR_HOME": str(tmp_path / "home")}
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, env=settings)
    found = run.stdout.split()
    assert found == ["4", "True"]
