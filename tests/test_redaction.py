"""What may be seen and what not, and how a hidden value finds its way back."""

import base64
import copy
import json
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from remit.errors import BadInput
from remit.services.redaction import (
    REMOVED,
    program_text,
    restore,
    text_without_secrets,
    without_secrets,
)

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAcanary\n-----END RSA PRIVATE KEY-----"
ANTHROPIC = "sk-ant-api03-Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0LzXcVbNm-AA"
GITHUB = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
UUID = "0190f0f0-7b6a-7c3e-8a52-3f4f0a3d9b11"
SHA = "da39a3ee5e6b4b0d3255bfef95601890afd80709"


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SHAPES = {
    "jwt": JWT,
    "pem": PEM,
    "pem that was cut off": PEM[:70],
    "openssh": PEM.replace("RSA", "OPENSSH"),
    "putty": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\nAAAAIHiddenHiddenHidden",
    "pgp": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdGBF\n-----END PGP PRIVATE KEY BLOCK-----",
    "anthropic": ANTHROPIC,
    "openai": "sk-proj-abcDEF123456ghiJKL789",
    "github": GITHUB,
    "github fine-grained": "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ",
    "gitlab": "glpat-aB3dE5gH7jK9mN1pQ3sT",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "slack": "xoxb-123456789012-abcdefABCDEF",
    "slack hook": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX",
    "stripe": "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "npm": "npm_aB3dE5gH7jK9mN1pQ3sTuVwXyZ0123456789",
    "hugging face": "hf_aB3dE5gH7jK9mN1pQ3sTuVwXyZ01234567",
    "our own": "rmt_user_abcdefghijklmnopqrstuvwxyz012345",
    "bearer": "Bearer 0123456789abcdefghij",
    "basic": f"Basic {base64_of('user:hunter2-hunter2')}",
    "password in an address": "postgresql://remit:hunter2@db/remit",
    "key as the user": "https://aB3dE5gH7jK9mN1pQ3sTuVwX@example.org/repo.git",
}

TELLING = """
apiKey api_key API-KEY apikey APIKEY x-api-key X_Api_Key openaiApiKey ANTHROPIC_API_KEY key keys
secret secrets clientSecret client-secret mySecretValue token accessToken refresh_token id_token
githubtoken authToken bearerToken password passwd pwd dbPassword db_pass smtpPass pass passphrase
dbpass databasepass userpass adminpass rootpass smtppass ftppass mypass mailpass loginpass
auth authorization Authorization proxy-authorization basicAuth oauth cookie cookies Set-Cookie
credential credentials creds jwt dsn privateKey private_key sshkey signing-key encryptionKey
accountKey storage_key pin otp totp sessionId session_token pat signature connectionString hmac
salt csrfToken mnemonic seed_phrase webhookSecret p4ssw0rd t0ken s3cr3t passwort kennwort
"""
NAMES = TELLING.split()
ODD_NAMES = [
    "api key",
    "API  KEY",
    "s.e.c.r.e.t",
    "pass-word",
    "pass word",
    "to/ken",
    "p\u0430ssw\u043erd",  # Cyrillic
    "\u0455ecret",
    "t\u03bfken",  # Greek
    "\uff21\uff30\uff29\uff3f\uff2b\uff25\uff39",  # full width
    "\U0001d429\U0001d41a\U0001d42c\U0001d42c\U0001d430\U0001d428\U0001d42b\U0001d41d",  # bold
    "to\u200bken",  # zero width
    "pa\u0301ssword",
    "\u043f\u0430\u0440\u043e\u043b\u044c",
    "\u5bc6\u7801",
    "contrase\u00f1a",
    "config.database.password",
    "password2",
    "API_KEY_1",
    "apiKeys",
]


@pytest.mark.requirement("PC-53", "PC-55")
@pytest.mark.parametrize("name", NAMES + ODD_NAMES)
def test_a_value_is_hidden_because_of_its_name(name: str) -> None:
    for value in ("hunter2", 12345678, ["hunter2"], {"inner": "hunter2"}):
        clean, paths = without_secrets({"deep": [{name: value}]})
        assert "hunter2" not in json.dumps(clean)
        assert "12345678" not in json.dumps(clean)
        assert REMOVED in json.dumps(clean)
        assert len(paths) == 1
        assert paths[0].startswith("deep[0].")


@pytest.mark.requirement("PC-53", "PC-55")
@pytest.mark.parametrize("secret", SHAPES.values(), ids=SHAPES)
def test_a_value_is_hidden_because_of_its_shape(secret: str) -> None:
    for text in (
        secret,
        f"use {secret}",
        json.dumps({"note": secret}),
        json.dumps({"note": json.dumps([secret])}),
        quote(secret, safe=""),
        quote(quote(secret, safe=""), safe=""),
        base64_of(secret),
        base64_of(base64_of(secret)),
        base64_of(json.dumps({"a": secret})),
        secret.encode().hex(),
        f"https://example.org/?next={quote(secret, safe='')}",
    ):
        found, paths = without_secrets({"a": {"b": [text]}})
        assert len(paths) == 1
        assert paths[0].startswith("a.b[0]")
        clean = json.dumps(found)
        assert secret not in clean
        assert json.dumps(secret)[1:-1] not in clean
        assert text not in clean


HIDDEN = [
    # the environment of a program
    {"env": {"FOO": "s3"}},
    {"env": {"FOO": 53}},
    {"env": {"PATH": "/usr/bin:/opt/aB3dE5gH7jK9mN1pQ3s3TuVw/bin"}},
    {"env": {"HOME": "s3", "PATH": "s3"}},
    {"env": ["HOME=s3"]},
    {"env": {"LANG": f"C {GITHUB} s3"}},
    {"env": {"name": "s3", "value": "s3"}},
    {"env": ["FOO=s3"]},
    {"env": [["FOO", "s3"]]},
    {"env": [{"name": "FOO", "value": "s3"}]},
    {"env": "FOO=s3"},
    {"env": {"nested": {"PATH": "s3"}}},
    {"ENVIRONMENT": {"A": "s3"}},
    {"envVars": {"A": "s3"}},
    {"processEnv": {"A": "s3"}},
    {"environment_variables": {"A": "s3"}},
    # headers
    {"httpHeaders": {"A": "s3"}},
    {"headers": [{"name": "X-Thing", "value": "s3"}]},
    {"headers": ["X-Thing: s3"]},
    # arguments
    {"args": ["--password", "s3"]},
    {"args": ["--client-secret=s3"]},
    {"args": ["-e", "FOO=s3"]},
    {"args": ["--env", "FOO=s3"]},
    {"args": ["-H", "X-Thing: s3"]},
    {"args": ["-u", "me:s3"]},
    {"args": ["-c", "model_providers.mine.api_key=s3"]},
    {"args": ["--config", '{"apiKey": "s3"}']},
    {"pairs": [["API_KEY", "s3"], ["Authorization", "s3"]]},
    # command lines and other texts
    {"command": "TOKEN=s3 ./run"},
    {"command": "mysql --password=s3 -u root"},
    {"command": "tool --token s3 --verbose"},
    {"command": "curl -u me:s3 https://example.org"},
    {"command": "curl -H 'X-Api-Key: s3' https://example.org"},
    {"line": "OPENAI_API_KEY=s3"},
    {"line": "Authorization: Digest s3"},
    {"line": "Cookie: a=1; b=s3; c=2"},
    {"url": "https://example.org/?api_key=s3&x=1"},
    {"text": 'settings {"password": "s3"} end'},
    {"text": "settings {'password': 's3'} end"},
    {"text": "host: a\npassword: s3\nport: 5"},
    # a pair of name and value
    {"name": "API_KEY", "value": "s3"},
    {"settings": [{"key": "db.password", "value": "s3"}]},
    # encoded
    {"a": base64_of('{"password": "s3 s3 s3"}')},
    {"a": quote('{"password": "s3"}')},
    {"a": base64_of("API_KEY=s3-s3-s3-s3")},
    {"a": base64_of(quote("api_key=s3&b=2"))},
    {"a": '{"token": "s3", "token": null}'},
    {"a": '"{\\"token\\": \\"s3\\"}"'},
    # what a name says about a secret has to be that
    {"secretRef": "s3-aB3dE5gH7jK9mN1p"},
    {"tokenUrl": "s3"},
    {"tokenLimit": "s3"},
    {"maxTokens": "s3"},
    {"keyId": "s3"},
    # as a name
    {f"x {GITHUB} s3": 1},
]


@pytest.mark.requirement("PC-53", "PC-54", "PC-55", "PC-78")
@pytest.mark.parametrize("document", HIDDEN, ids=json.dumps)
def test_a_secret_is_found_wherever_it_stands(document: dict[str, Any]) -> None:
    clean, paths = without_secrets(document)
    assert "s3" not in json.dumps(clean).lower().replace(r"\u0073", "s")
    assert "53" not in json.dumps(clean)
    assert base64_of("s3")[:3] not in json.dumps(clean).replace("PATH", "")
    assert REMOVED in json.dumps(clean)
    assert paths
    assert not any("s3" in path for path in paths)
    assert without_secrets(clean) == (clean, paths)


SHOWN = [
    {"maxTokens": 4096, "max_tokens": 1, "tokenBudget": 7, "tokenCount": 3, "tokens": 9},
    {"tokens": {"input": 10, "output": 20, "cached": 0}, "maxContextTokens": 150_000},
    {"usage": {"inputTokens": 1, "output_tokens": 2, "tokensPerMinute": 3}},
    {"model": "claude-sonnet-4-5", "fallback": "gpt-5.5-codex", "other": "models/gemini-3-pro"},
    {"id": UUID, "agentId": UUID, "tokenId": UUID, "key_id": UUID, "sha": SHA, "commit": SHA[:12]},
    {"hash": "sha256:" + SHA + SHA[:24], "digest": "9f86d081884c7d659a2feaa0c55ad015" * 2},
    {"path": "/usr/local/lib/python3.11/site-packages/remit", "keyFile": "/etc/ssl/private.pem"},
    {"publicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGc7Zm9vYmFyYmF6cXV4cXV1eGZvb2Jh me@host"},
    {"pem": "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQ\n-----END PUBLIC KEY-----"},
    {"keyboard": "qwerty", "monkey": "yes", "authored": "2020", "author": "me", "authority": "x"},
    {"primaryKey": "name", "cacheKey": "v1", "idempotencyKey": "a-b-c", "sortKey": "at"},
    {"passRate": 0.5, "bypass": "no", "compass": "north", "pinned": "yes", "spinner": "dots"},
    {"tokenizer": "cl100k", "secretary": "Ann", "keyword": "k", "hotkey": "ctrl"},
    {"secretRef": "openai-production-2", "apiKeyEnv": "OPENAI_API_KEY", "authType": "oauth"},
    {
        "tokenUrl": "https://example.org/oauth/token",
        "cookieName": "session",
        "keyPath": "keys/a.pem",
    },
    {"passwordLength": 12, "tokenTtl": "30m", "tokenExpiresAt": "2026-01-01T00:00:00Z"},
    {"secret": False, "token": None, "password": "", "keys": [], "env": {}, "auth": True},
    {"env": {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "Europe/Berlin"}},
    {"env": {"NODE_ENV": "production", "DEBUG": "1", "LOG_LEVEL": "info", "HOME": "/home/me"}},
    {"env": ["PATH=/usr/bin", "TERM=dumb"], "environment": "production"},
    {"headers": {"Content-Type": "application/json", "Accept": "*/*", "User-Agent": "remit/1"}},
    {"args": ["-H", "Accept: text/plain", "--max-tokens", "4096", "--verbose", "a=b"]},
    {"command": "python -m worker --verbose --max-tokens 5 --auth-mode basic"},
    {"command": "tool --token $TOKEN --password=${PASSWORD}"},
    {"url": "https://example.org/a?b=c&page=2", "git": "ssh://git@example.org/repo.git"},
    {"text": "The key to success: read the token budget. Basic understanding is enough."},
    {"text": "{not json", "more": "[1, 2", "quote": '"'},
    {"prompt": "# Role\n\nKeep the secret of prose: be brief.\nAuthors: you.\n\nKey points:\n- a"},
    {"tags": ["auth", "login"], "words": ["token", "secret"]},
    {"inner": '{"model": "m", "max_tokens": 5}'},
    {"encoded": base64_of("nothing to see here, only words"), "percent": "100%25 sure"},
    {"date": "2026-11-15T12:39:13Z", "share": 0.25, "nothing": None, "big": 2**60},
    {"name": "color", "value": "red", "list": [{"key": "color", "value": "blue"}]},
]


@pytest.mark.requirement("PC-55")
@pytest.mark.parametrize("document", SHOWN, ids=lambda one: " ".join(one))
def test_ordinary_values_stay(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    assert without_secrets(document) == (before, [])


@pytest.mark.requirement("PC-54")
def test_every_hidden_value_is_the_marker_and_is_listed() -> None:
    document = {
        "model": "m",
        "apiKey": "a",
        "env": {"A": "b", "PATH": "/bin"},
        "nested": [{"clientSecret": {"x": "c", "y": ["d", 5]}}],
        "note": f"see {JWT}",
    }
    assert without_secrets(document) == (
        {
            "model": "m",
            "apiKey": REMOVED,
            "env": {"A": REMOVED, "PATH": "/bin"},
            "nested": [{"clientSecret": {"x": REMOVED, "y": [REMOVED, REMOVED]}}],
            "note": REMOVED,
        },
        [
            "apiKey",
            "env.A",
            "nested[0].clientSecret.x",
            "nested[0].clientSecret.y[0]",
            "nested[0].clientSecret.y[1]",
            "note",
        ],
    )
    assert REMOVED == "***REDACTED***"


def test_of_a_longer_text_the_rest_stays_readable() -> None:
    text = f"First line.\nUse {ANTHROPIC} here.\nexport API_KEY=hunter2\nLast line."
    assert without_secrets({"prompt": text})[0]["prompt"] == (
        f"First line.\nUse {REMOVED} here.\nexport API_KEY={REMOVED}\nLast line."
    )
    assert text_without_secrets("Nothing here.") == ("Nothing here.", False)
    assert text_without_secrets(f"a {base64_of(JWT)} b") == (f"a {REMOVED} b", True)


@pytest.mark.requirement("PC-53")
@pytest.mark.parametrize(
    ("told", "clean"),
    [
        ("cannot use {'env': {'A': 'hunter2'}}!", "cannot use {'env': {'A': HIDDEN}}!"),
        ('{"a": {"env": {"X": "hunter2"}} broken', '{"a": {"env": {"X": HIDDEN}} broken'),
        ("Config(env={'A': 'x{hunter2', 'B': 7})", "Config(env={'A': HIDDEN, 'B': HIDDEN})"),
        ("'env': {'PATH': '/usr/bin', 'X': 'hunter2'}", "'env': {'PATH': '/usr/bin', 'X': HIDDEN}"),
        ("'env': {'X': {'value': 'hunter2'}} on", "'env': {HIDDEN} on"),
        ("'env': {'X': 'hunter2 and no end", "'env': {HIDDEN"),
        ("'env': {} and env = {}", "'env': {} and env = {}"),
        ("'other': {'X': 'hunter'}", "'other': {'X': 'hunter'}"),
        ("['--password', 'hunter2', '--fast', 'so']", "['--password', HIDDEN, '--fast', 'so']"),
        ('["--max-tokens", "12"]', '["--max-tokens", "12"]'),
    ],
)
def test_settings_that_a_text_tells_of_have_no_secrets(told: str, clean: str) -> None:
    """As an error does, or a line of a log."""
    clean = clean.replace("HIDDEN", REMOVED)
    assert text_without_secrets(told)[0] == clean
    assert text_without_secrets(clean)[0] == clean


#: What programs and tests print, which names keys and tokens and has none.
PRINTED = f"""\
E        +  where 3 = sorted([1, 2], key=len)
>       assert max(rows, key=itemgetter(1)) == 4
FAILED tests/test_app.py::test_tokens[key=len] - assert 1 == 2
def tokenize(text, key=None, token=None):
    token = next(tokens)
    auth = login(user)
-password: required
+password: optional
  assert {{'key': 1, 'token': 'NAME'}} == {{'key': 2}}
KeyError: 'api_key'
AssertionError: expected password to be "hunter2"
HEAD is now at {SHA} Add
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
run {UUID} failed, token_id={UUID}
go.sum h1:HtqpIVDClZ4nwg75+f6Lvsy/wHu+3BoSGCbBAcpTsTg=
pass: 12
Tokens: 1234 in, 99 out
-----END OF TESTS-----
"""


def test_what_programs_print_stays_readable() -> None:
    assert program_text.without(PRINTED) == PRINTED


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        (f"using {GITHUB} for it", f"using {REMOVED} for it"),
        (f"Authorization: Bearer {JWT}", f"Authorization: Bearer {REMOVED}"),
        ("DB_PASSWORD=Tr0ub4dor-and-3", f"DB_PASSWORD={REMOVED}"),
        ("connect to postgres://app:Tr0ub4dor3@db/x", f"connect to postgres://app:{REMOVED}@db/x"),
        (f"+ curl -H 'X-Key: {ANTHROPIC}'", f"+ curl -H 'X-Key: {REMOVED}'"),
        (f"before\n{PEM}\nafter", f"before\n{REMOVED}\nafter"),
        (PEM.partition("\n")[2] + "\nafter", f"{REMOVED}\nafter"),
        (base64_of(f"token={GITHUB}"), REMOVED),
    ],
)
def test_a_secret_in_what_programs_print_is_cut_out_and_the_rest_stays(
    line: str, clean: str
) -> None:
    assert program_text.without(f"{PRINTED}{line}\n{PRINTED}") == f"{PRINTED}{clean}\n{PRINTED}"


def test_the_document_itself_is_left_alone() -> None:
    document = {"apiKey": "a", "list": [{"env": {"A": "b"}}]}
    before = copy.deepcopy(document)
    without_secrets(document)
    assert document == before


# Whatever the document

SECRETS = st.sampled_from(
    [
        *SHAPES.values(),
        "hunter2",
        "correct horse battery",
        "p@ss=w0rd&x",
        '{"a": 1}',
        "0" * 40,
        "é☃",
    ]
)
ORDINARY = st.sampled_from(["model", "list", "nested", "x", "title", "count"])
SECRET_NAMES = st.sampled_from(NAMES + ODD_NAMES)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(ORDINARY | SECRET_NAMES | st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def planted(draw: st.DrawFn) -> tuple[Any, str]:
    """A document with a secret under a name that tells, or in an `env`."""
    secret = draw(SECRETS)
    if draw(st.booleans()):
        found: Any = {draw(SECRET_NAMES): secret}
    else:
        variable = draw(st.sampled_from(["FOO", "DATABASE", "x", "Thing", "API_KEY"]))
        found = {
            "env": draw(
                st.sampled_from(
                    [{variable: secret}, [f"{variable}={secret}"], {variable: [secret]}]
                )
            )
        }
    for _ in range(draw(st.integers(0, 4))):
        match draw(st.integers(0, 3)):
            case 0:
                found = [draw(LEAVES), found]
            case 1:
                found = {draw(ORDINARY): found, "beside": draw(LEAVES)}
            case 2:
                found = {"inner": json.dumps(found)}
            case _:
                found = {draw(SECRET_NAMES): found}
    return found, secret


# The first drawing of texts reads tables, which takes long on a busy machine.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@unhurried
@given(planted())
def test_a_planted_secret_never_survives(case: tuple[Any, str]) -> None:
    document, secret = case
    clean, paths = without_secrets(document)
    shown = json.dumps(clean, ensure_ascii=False) + json.dumps(paths, ensure_ascii=False)
    wrapped = secret
    for _ in range(6):
        assert wrapped not in shown
        wrapped = json.dumps(wrapped, ensure_ascii=False)[1:-1]
    assert paths


@unhurried
@given(DOCUMENTS | planted().map(lambda case: case[0]))
def test_hiding_twice_is_hiding_once(document: Any) -> None:
    once = without_secrets(document)
    assert without_secrets(once[0]) == once


@unhurried
@given(DOCUMENTS | planted().map(lambda case: case[0]))
def test_what_was_hidden_comes_back(document: Any) -> None:
    assume(REMOVED not in json.dumps(document))
    assert restore(without_secrets(document)[0], document) == document


# Much of the worst

WORST = {
    "one letter": "a",
    "jwt": "eyJ-",
    "jwt with dots": "eyJaaaaaaaa.",
    "keys": "sk-",
    "begin": "-----BEGIN PRIVATE KEY",
    "whole begin": "-----BEGIN PRIVATE KEY-----",
    "addresses": "://a:",
    "many users": "://" + "a" * 30,
    "assignments": 'a="',
    "names": "token_",
    "name and sign": "token=",
    "flags": "--token ",
    "colons": '"token":',
    "bearer": "Bearer ",
    "percent": "%25",
    "base64": "QUFB",
    "hex": "41",
    "brackets": "[",
    "braces": '{"a":',
    "spaces": " ",
    "lines": "token:\n",
    "dashes": "-",
    "capitals": "aB",
    "odd": "\u0455",
}


@pytest.mark.parametrize("part", WORST.values(), ids=WORST)
@pytest.mark.slow
def test_much_of_the_worst_text_takes_no_time(part: str) -> None:
    text = part * (250_000 // len(part))
    begin = time.process_time()
    without_secrets({"text": text, "list": [text + "!"]})
    text_without_secrets("x\n" + text)
    assert time.process_time() - begin < 8


@pytest.mark.slow
def test_very_long_names_take_no_time() -> None:
    begin = time.process_time()
    without_secrets({part * (75_000 // len(part)): "x" for part in WORST.values()})
    assert time.process_time() - begin < 15


# Back again


OLD = {
    "model": "a",
    "apiKey": "one",
    "env": {"A": "two", "PATH": "/bin"},
    "args": ["--token", "three", "--password", "four", "--verbose"],
    "servers": [
        {"name": "x", "token": "five", "port": 1},
        {"name": "y", "token": "six", "port": 2},
    ],
    "inner": '{"token": "seven", "n": 1}',
    "text": f"a\n{JWT}\nb",
}


def seen() -> Any:
    return without_secrets(OLD)[0]


def test_what_a_client_changes_is_changed_and_the_rest_is_kept() -> None:
    new = seen()
    new["model"] = "b"
    new["apiKey"] = "another"
    new["env"]["B"] = "new"
    new["servers"][0]["port"] = 7
    new["inner"] = new["inner"].replace("1", "2")
    assert restore(new, OLD) == {
        **OLD,
        "model": "b",
        "apiKey": "another",
        "env": {"A": "two", "PATH": "/bin", "B": "new"},
        "servers": [{"name": "x", "token": "five", "port": 7}, OLD["servers"][1]],  # type: ignore[index]
        "inner": '{"token": "seven", "n": 2}',
    }


def test_secrets_move_with_what_they_belong_to() -> None:
    new = seen()
    new["args"] = new["args"][2:]
    new["servers"].reverse()
    restored = restore(new, OLD)
    assert restored["args"] == ["--password", "four", "--verbose"]
    assert [one["token"] for one in restored["servers"]] == ["six", "five"]


def test_secrets_of_equal_entries_keep_their_place_and_those_of_lists_their_list() -> None:
    old = {"args": ["--key", "one", "--key", "two"], "rows": [["--token", "three"], ["x"]]}
    new: Any = without_secrets(old)[0]
    assert "three" not in str(new)
    new["rows"][0].append("--verbose")
    assert restore(new, old) == {**old, "rows": [["--token", "three", "--verbose"], ["x"]]}


def test_what_is_left_out_is_gone() -> None:
    assert restore({"env": {"A": REMOVED}}, OLD) == {"env": {"A": "two"}}
    assert restore({}, OLD) == {}


@pytest.mark.parametrize(
    ("new", "path"),
    [
        ({"apiToken": REMOVED}, "apiToken"),
        ({"env": {"C": REMOVED}}, "env.C"),
        ({"args": ["--key", REMOVED]}, "args[1]"),
        ({"args": ["--token", "x", REMOVED]}, "args[2]"),
        ({"servers": [{"name": "z", "token": REMOVED}]}, "servers[0].token"),
        ({"deep": [{"x": [REMOVED]}]}, "deep[0].x[0]"),
        ({"model": ["--token", REMOVED]}, "model[1]"),
        ({"args": [{"name": "x", "token": REMOVED}]}, "args[0].token"),
        ({"text": f"{REMOVED} and more"}, "text"),
        ({"model": f"{REMOVED}!"}, "model"),
        ({REMOVED: 1}, REMOVED),
    ],
)
def test_a_marker_for_nothing_is_refused(new: Any, path: str) -> None:
    with pytest.raises(BadInput) as refused:
        restore(new, OLD)
    assert refused.value.sentence.startswith(f"{path} ")
    assert not any(secret in str(refused.value) for secret in ("one", "two", "four", "five"))


def test_a_marker_that_was_stored_is_no_value() -> None:
    with pytest.raises(BadInput, match=r"^env\.A "):
        restore({"env": {"A": REMOVED}, "model": "b"}, {"env": {"A": REMOVED}})
