"""Nothing that Nectar logs holds a credential."""

import logging
import re
from pathlib import Path

import nectar
from nectar.trust.secrets import logger

SOURCE = Path(nectar.__file__).parent
CANARY = "hunter2canary"


def test_messages_arguments_and_errors_are_logged_without_credentials(caplog):
    log = logger("nectar.of_a_test")
    try:
        raise OSError(f"no route to postgresql://bob:{CANARY}@db/x")
    except OSError as error:
        log.warning("it failed: %s", error, exc_info=True)
        log.warning(f"with password={CANARY}")
        log.warning("at %(url)s", {"url": f"https://x/y?sig={CANARY}"})
    assert CANARY not in caplog.text
    assert caplog.text.count("...") >= 4
    assert "no route to postgresql://...@db/x" in caplog.text


def test_other_messages_are_logged_as_they_are(caplog):
    caplog.set_level(logging.DEBUG, "nectar.of_a_test")
    logger("nectar.of_a_test").debug("%d of %s", 3, "orders")
    assert caplog.records[0].getMessage() == "3 of orders"


def test_a_logger_has_one_filter_however_often_it_is_asked_for():
    assert logger("nectar.of_a_test").filters == logger("nectar.of_a_test").filters
    assert len(logger("nectar.of_a_test").filters) == 1


def test_every_module_has_its_logger_from_here():
    asks = re.compile(r"\bgetLogger\(")
    found = {file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py") if asks.search(file.read_text())}
    assert found == {"trust/secrets.py"}, "take the logger from nectar.trust.secrets: what it logs holds no credentials"


def test_every_warning_is_given_without_credentials():
    gives = re.compile(r"\bwarnings\.warn(_explicit)?\(")
    texts = {file.relative_to(SOURCE).as_posix(): file.read_text() for file in SOURCE.rglob("*.py")}
    missing = [name for name, text in texts.items() if gives.search(text) and "redacted(" not in text]
    assert missing == []
