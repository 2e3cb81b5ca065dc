"""Texts that code holds and does not use: docstrings."""

from nectar.observation.texts import texts_of

QUERY = "select now() from t"


def documented():
    """Like select now() from t."""
    return 1


def of_inner():
    def inner():
        """Like select now() from t."""

    return inner


def asks():
    return documented.__doc__


def used():
    return "select now() from t"


def used_twice():
    """select now() from t"""
    return "select now() from t"


def in_class():
    class Inner:
        text = "select now() from t"

    return Inner.text


def queries(*functions):
    return [text for text in texts_of(functions) if "now()" in text]


def test_docstrings_are_not_used():
    assert queries(documented, of_inner) == []


def test_unless_somebody_asks_for_them():
    assert queries(documented, asks) == ["Like select now() from t."]


def test_all_other_texts_are():
    for function in (used, in_class, lambda: "select now() from t", lambda t: ["select now() from t" for _ in t]):
        assert queries(function) == [QUERY], function


def test_one_text_may_be_both():
    """Python keeps equal texts once: what is used may stand where docstrings do."""
    assert queries(used_twice) == [QUERY]
