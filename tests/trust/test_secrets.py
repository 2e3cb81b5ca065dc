"""What may be a credential is left out of texts, by what it is called and by what it looks like; the rest stays."""

import time
from random import Random

import pytest

from nectar.trust.secrets import is_secret_name, is_secret_parameter, looks_secret, redacted

CANARY = "hunter2canary"
KEY = "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6"
CALLED = [
    f"f(dsn='host=db', password='{CANARY}')", f"password={CANARY} host=db", f"Server=x;Pwd={CANARY};Database=y",
    f"AccountKey={CANARY}==;EndpointSuffix=x", f'{{"api_key": "{CANARY}"}}', f'{{\\"api_key\\": \\"{CANARY}\\"}}',
    f"password: str = '{CANARY}'", f'settings["secret_token"] = "{CANARY}"', f"TOKEN = b'{CANARY}'",
    f"spark.hadoop.fs.s3a.secret.key={CANARY}", f"fs.azure.account.key.x={CANARY}", f"clientSecret={CANARY}",
    f"dbPassword: {CANARY}", f"<password>{CANARY}</password>", f"OPTIONS (user 'x', password '{CANARY}')",
    f"CREATE USER x IDENTIFIED BY '{CANARY}'", f"pg_dump --password {CANARY} db", f"X-Api-Key: {CANARY}",
    f"aws_secret_access_key={CANARY}", f"'passwd' => '{CANARY}'", f"Cookie: a={CANARY}; b={CANARY}",
    f"note: the password={CANARY}", f"at 10:30 token={CANARY}", f"snowflake: password={CANARY}",
    f'{{"conn": "host=h password={CANARY}"}}', f"url=https://h/?token={CANARY}", f'x = "password={CANARY}"',
    f"OSError: could not connect with password={CANARY}", f"a: b: c=d: 'e=f, password={CANARY}'",
    f"Authorization: Bearer {CANARY}", f"{{'Authorization': 'Basic {CANARY}'}}", f"connection_string={CANARY}",
    f"machine h login u password {CANARY}", f"password=(\n '{CANARY}')", f"password: |\n  {CANARY}\n  {CANARY}\n",
    f"('passwd', '{CANARY}')", f"['db_password','{CANARY}']", f"curl -u admin:{CANARY} x", f"sshpass -p {CANARY} ssh h",
    f"curl --user 'admin:{CANARY}' x", f"token: >-\n\t{CANARY}",
]  # fmt: skip
ADDRESSES = [
    f"postgresql://bob:{CANARY}@db/x", f"postgresql://bob:p@ss/{CANARY}@db/x", f"https://{CANARY}@host/x",
    f"read mysql+driver://a:{CANARY}@h:33/x now", f"https://x/y?sig={CANARY}&v=1", f"https://x/y?access_token={CANARY}",
    f"https://x/y?X-Amz-Signature={CANARY}&X-Amz-Credential={CANARY}&X-Amz-Security-Token={CANARY}",
    f"s3://{CANARY}:{CANARY}@bucket/x", f"abfss://me:{CANARY}@account/x",
]  # fmt: skip
LOOKS = [
    "AKIAIOSFODNN7EXAMPLE", f"ghp_{KEY}", f"github_pat_{KEY}", f"glpat-{KEY[:20]}", f"xoxb-123-{KEY}", f"sk-{KEY}",
    f"sk_live_{KEY}", f"AIza{KEY}abc", f"ya29.{KEY}", f"npm_{KEY}abcd", f"pypi-{KEY}", f"dapi{KEY}", f"hf_{KEY}",
    f"SG.{KEY}.{KEY}", f"https://hooks.slack.com/services/T1/B1/{KEY}", f"bearer {KEY}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    f"dop_v1_{KEY}{KEY}", f"shpat_{KEY}", f"sq0atp-{KEY[:22]}", f"lin_api_{KEY}abcd", f"glsa_{KEY}_12345678",
    f"AGE-SECRET-KEY-1{KEY.upper()}", f"hvs.{KEY}", f"123456789:AA{KEY}", f"glrt-{KEY}", f"ATATT3{KEY}",
    f"sntrys_{KEY}",
    f"pscale_pw_{KEY}", f"dp.pt.{KEY}", f"dckr_pat_{KEY}", f"NRAK-{KEY}", f"GOCSPX-{KEY}", f"whsec_{KEY}", f"key-{KEY}",
    f"abc.atlasv1.{KEY}{KEY}", f"https://discord.com/api/webhooks/12345678/{KEY}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----", f"-----BEGIN PRIVATE KEY-----\n{KEY}",
]  # fmt: skip
INNOCENT = [
    "f(n=3, words='token of x')", "etl.clean(author='bob', passage='x')", "https://host:8080/x?page=2",
    "abfs://container@account/x", "filter of orders.parquet", "f(key='a', keys=[1])", "at 10:30:00", "compass=3",
    "tokenizer='bert'", "assignment=3", "signal=3 monkey=4", "max_tokens=3", "a password of nobody", "password=None",
    "{'a': 'b@c'}", "read basic information", "eyJust a word", "sk-learn", "x = yield", "dtype: Int64", "col('pass')",
    "f('token', 'x')", "select(['id', 'token'])", "docker run -u 1000:1000 x", "a | b", "key-value", "login of bob",
    "(1, 'a')", "pattern.", "12345678:ab", "xai-search",
]  # fmt: skip


@pytest.mark.parametrize("text", [*CALLED, *ADDRESSES, *LOOKS])
def test_a_credential_is_left_out_and_the_text_says_so(text):
    clean = redacted(f"before {text} after")
    assert CANARY not in clean
    assert KEY[8:24] not in clean
    assert "..." in clean
    assert clean.startswith("before ")
    assert redacted(clean) == clean, "what was left out once is left out for ever"


@pytest.mark.parametrize("text", [*CALLED, *ADDRESSES, *LOOKS])
def test_it_is_noticed_in_bytes_of_any_kind_however_many(text):
    if "--password" in text or "IDENTIFIED" in text or "OPTIONS" in text or "Cookie" in text or "Basic" in text:
        pytest.skip("texts of this kind are not looked for in bytes")
    assert looks_secret(b"\x80\x05\xff " + text.encode() + b" \x00")
    assert looks_secret(bytes(100_000) + b" " + text.encode() + b" " + bytes(100_000))


@pytest.mark.parametrize("text", INNOCENT)
def test_other_texts_stay_as_they_are(text):
    assert redacted(text) == text
    assert not looks_secret(text)


@pytest.mark.parametrize("text", ["invalid token: try again", "password=%s", "password=?", "token=${TOKEN}"])
def test_messages_and_places_for_values_hold_no_credential(text):
    assert not looks_secret(text)


@pytest.mark.parametrize(
    "name",
    ["password", "PASSWORD", "dbPassword", "DB_PASSWORD", "db.password", "passwd", "pwd", "api_key", "apiKey", "APIKey",
     "X-Api-Key", "token", "access_token", "aws_secret_access_key", "AWS_SESSION_TOKEN", "client_secret", "credentials",
     "auth", "Authorization", "cookie", "private_key", "connection_string", "connectionString", "dsn", "account_key",
     "sig", "X-Amz-Signature", "sas_token", "passphrase", "fs.s3a.secret.key", "proxy_password_2", "Set-Cookie"],
)  # fmt: skip
def test_names_of_credentials(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["author", "authors", "key", "keys", "primary_key", "tokenizer", "max_tokens", "passage", "passenger", "compass",
     "signal", "assign", "monkey", "hash", "session", "n", "", "path", "secretary_of_state"[:0] or "region"],
)  # fmt: skip
def test_names_of_other_things(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize("name", ["pwd", "jwt", "key", "Key", "session", "PHPSESSION", "usertoken", "oauth", "msig"])
def test_names_of_credentials_in_addresses(name):
    assert is_secret_parameter(name)


@pytest.mark.parametrize("name", ["monkey", "keys", "design", "signal", "passage", "id", "versionId", ""])
def test_names_of_other_things_in_addresses(name):
    assert not is_secret_parameter(name)


def test_long_texts_take_time_in_proportion():
    assert redacted("a" * 200_000 + "key") == "a" * 200_000 + "key"
    assert not looks_secret(b"key=" * 50_000)


def test_numbers_hold_no_credentials():
    """Recipes hold captured arrays: one that is refused cannot be made again."""
    refused = sum(looks_secret(Random(seed).randbytes(1 << 18)) for seed in range(20))
    assert refused <= 1
    assert looks_secret(Random(0).randbytes(1 << 18) + b"password='hunter2'" + Random(1).randbytes(1 << 18))


# texts that were made to take long, or are just long

HOSTILE = [
    ("", "x://", ""), ("://", "a:", ""), ("", "://:", ""), ("eyJ", "://:", "@"), ("", "a://b@", ""),
    ("", "://a:b@", "@"), ("", "-eyJ", "\n"), ("", "eyJ--", ""), ("cookie:", " ", "..."), ("cookie:", "\\", "..."),
    ("cookie", "\\", "x"), ("cookie:", "\n ", "..."), ("token ", "a-", ""), ("token=", '"\\', ""),
    ("password", " ", "x"), ("identified", " ", ""), ("token=", "\\", ""), ("", "basic ", ""), ("bearer ", "a", "!"),
    ('token="""', "a", ""), ("", "token='''", "\n"), ("key:", " a|", ""), ('key="', '\\"', "\n"), ("", 'key="\n', ""),
    ("--", "-", " "), ("", "--key ", ""), ("-----BEGIN ", "A ", ""), ("", "-----BEGIN PRIVATE KEY", ""),
    ("", "SG.aaaaaaaaaaaaaaaa", ""), ("token ", "a", ""), ("", "key-", ""), ("", "hvs.", ""),
    ("password: |\n", " ", ""),
    ("", "password: |\n ", ""), ("password: |\n", " a\n", "x"), ("", "-u a", ""), ("-u ", "a", ""),
    ("", "login a ", ""),
    ("", "('token','", ""), ("('token','", "a", ""), ("", "(  ", ""), ("('", "token", ""), ("", "glsa_", ""),
    ("", "1234567890:AA", ""), ("password=(", " ", ""), ("", "sshpass -p ", ""), ("", "password=( ", ""),
]  # fmt: skip


@pytest.mark.parametrize(("before", "again", "after"), HOSTILE)
@pytest.mark.parametrize("function", [redacted, looks_secret])
def test_no_text_takes_more_than_its_length(function, before, again, after):
    """Other threads wait as long as a pattern is searched for. Told by time, as nothing else tells it."""

    def seconds(length):
        text = before + again * (length // len(again)) + after
        begin = time.thread_time()
        function(text)
        return time.thread_time() - begin

    short = min(seconds(1_000) for _ in range(5))
    long = min(seconds(16_000) for _ in range(2))
    assert long < 64 * max(short, 3e-4), "16 times the length; if each start went to the end, 256 times the work"


@pytest.mark.parametrize("text", [*CALLED, *ADDRESSES, *LOOKS])
@pytest.mark.parametrize("again", ["x://", "a:", "://a:a ", "-eyJ", "lorem ipsum, ", "\\ ", "a-"])
def test_credentials_are_found_in_long_texts(text, again):
    clean = redacted(f"{again * 2000} {text} {again * 2000}")
    assert CANARY not in clean
    assert KEY[8:24] not in clean


@pytest.mark.parametrize(
    "text",
    [f"x://bob:{'p@/:' * 3000}{CANARY}@host/x", f"x://{'u' * 9000}:{CANARY}@host", f"password='{'p' * 20_000}{CANARY}'",
     f"Authorization: {'a' * 20_000}{CANARY}", f"eyJ{'h' * 900}.{CANARY}.{CANARY}",
     f"eyJ{'h' * 4000}.{CANARY}.{CANARY}", f"cookie:{' ' * 50}{CANARY}",
     f"-----BEGIN PRIVATE KEY-----\n{'k' * 20_000}{CANARY}"],
)  # fmt: skip
def test_long_credentials_are_left_out_as_a_whole(text):
    clean = redacted(f"before {text}")
    assert CANARY not in clean
    assert redacted(clean) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [("x://a:1@h/y://b:2@c z://u@h", "x://...@c z://...@h"), ("x://h:80/a@b", "x://h:80/a@b"), ("x://h:80@b", "x://...@b"),
     ("x://u@y://v:1@w", "x://...@y://...@w"), ("abfs://c@a y://u@h", "abfs://c@a y://...@h"),
     ("abfs://c:1@a", "abfs://...@a"), ("x://@h", "x://...@h"), ("x://a<b@c", "x://a<b@c"), ("x://a?b=c@d", "x://a?b=c@d")],
)  # fmt: skip
def test_users_in_addresses(text, clean):
    assert redacted(text) == clean
    assert redacted(clean) == clean


@pytest.mark.parametrize("between", [" ", "  ", "\t", "\n ", "\r\n"])
@pytest.mark.parametrize("scheme", ["Basic", "BASIC", "basic", "Bearer"])
def test_a_scheme_is_known_whatever_stands_before_its_token(scheme, between):
    text = f"{scheme}{between}QWxhZGRpbjpvcGVuOTk="
    assert looks_secret(text)
    assert looks_secret(text.encode())
