"""Credentials written into code are found under their names, however they are bound; names of them are none."""

import pytest

from nectar.trust.literals import code_holds_secret, code_without_secrets

CANARY = "hunter2canary"
WRITTEN = [
    "PASSWORD = 'C'", "password: str = 'C'", "a, password = 1, 'C'", "self.api_key = 'C'", "conf['secret'] = 'C'",
    "connect(password='C')", "x = {'password': 'C'}", "def f(password='C'): pass", "def f(*, token='C'): pass",
    "if password == 'C': pass", "if 'C' == token: pass", "x = (token := 'C')", "password = 'a' + 'C'",
    "password = os.environ.get('DB_PASSWORD', 'C')", "password = os.getenv('PW', default='C')", "token = f'C'",
    "password = SecretStr('C')", "password = Field(default='C')", "secret = b64decode('C')", "PASSWORDS = ['C']",
    "password = 'C'.encode()", "password = None or 'C'", "tokens = {'password': {'bob': 'C'}}",
    "url = 'postgres://me:C@host/db'", "sql = \"host=db password=C\"", "x = 1  # token=C1", "o.option('password', 'C')",
    "b = b'postgres://me:C@host'", '"""Opens.\n\npassword=C\n"""', "b.set_password('C')", "f(auth=('me', 'C'))",
    "TOKENS = ('C', 'x')", "user, password = 'bob', 'C'", "class A:\n    auth = ('u', 'C')",
    "def f(auth=('u', 'C')): pass", "if password in ('C', 'x'): pass", "setattr(o, 'password', 'C')", "tokens = {'C'}",
    "passwords = frozenset(['C'])",
    "message = 'login failed: password=C'",
]  # fmt: skip
NOT_WRITTEN = [
    "password = os.environ['DB_PASSWORD']", "password = os.environ.get('DB_PASSWORD')", "password = getpass('pw')",
    "token = vault.read('team/db')", "SECRET_NAMES = ('password', 'token')", "password = ''", "password = None",
    "words = 'token'  # of a sentence", "tokenizer = 'bert'", "raise ValueError('invalid token: try again')",
    "connect(password=password)", "sql = 'password = %s'", "if token == '': pass",
    '"""Args:\n    token: of the service\n"""',
]  # fmt: skip


@pytest.mark.parametrize("line", WRITTEN)
def test_a_credential_in_code_is_found_and_left_out(line):
    text = f"import os\n{line.replace('C', CANARY)}\nx = 1\n"
    assert code_holds_secret(text)
    clean = code_without_secrets(text)
    assert CANARY not in clean
    assert clean.startswith("import os\n")
    assert clean.endswith("x = 1\n")
    assert code_without_secrets(clean) == clean


@pytest.mark.parametrize("line", NOT_WRITTEN)
def test_names_of_credentials_are_none(line):
    assert not code_holds_secret(f"import os\n{line}\n")


@pytest.mark.parametrize("line", ["password = os.environ['DB_PASSWORD']", "words = 'token'", "x = 'ä'; keys = [1]"])
def test_other_code_stays_as_it_is(line):
    assert code_without_secrets(f"import os\n{line}\n") == f"import os\n{line}\n"


def test_methods_are_code_too():
    text = f"    def f(self):\n        ä = 'ö'; password = '{CANARY}'\n        return ä\n"
    clean = code_without_secrets(text)
    assert clean == "    def f(self):\n        ä = 'ö'; password = '...'\n        return ä\n"


def test_text_that_is_no_code_is_searched_all_the_same():
    text = f"%magic\npassword = '{CANARY}'\n"
    assert CANARY not in code_without_secrets(text)
    assert code_holds_secret(text)
