"""Settings of all tests: how hard hypothesis tries, and that nothing of the caller's environment reaches a test."""

import os

import hypothesis
import pytest

# Time limits per example say more about the machine than about the code, so there are none.
hypothesis.settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.register_profile("deep", max_examples=2000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("NECTAR_TEST_PROFILE", "quick"))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NECTAR_")]:
        monkeypatch.delenv(name)
