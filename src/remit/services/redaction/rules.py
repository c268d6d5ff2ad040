"""Rules of redaction: shapes of secrets, and names of settings that say that their value is one.

Shapes are found wherever they are, also in a text once it is decoded. Every pattern takes linear
time: each repetition is bounded, or can begin only where it cannot have begun before.

Names come in every spelling: `apiKey`, `API-KEY`, `api key`, `s.e.c.r.e.t`, full-width letters, or
Cyrillic ones that look like Latin ones. They are normalised to plain words first. A name can also
speak *about* a secret (`maxTokens`, `tokenUrl`, `secretRef`): its judgement then decides which
values may stay.
"""

import base64
import binascii
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache
from urllib.parse import unquote_plus

#: Replaces a secret.
REMOVED = "***REDACTED***"

_BEFORE = r"(?<![A-Za-z0-9_-])"
_CERTAIN = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|PuTTY-User-Key-File-\d.*\Z"
    rf"|{_BEFORE}(?:"
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){0,2}"  # JWT, JWE
    r"|rmt_[a-z]{1,20}_[A-Za-z0-9_-]{16,}"
    r"|(?:[srp]k_(?:live|test)|whsec|gh[a-z]|github_pat|glpat|gldt|glrt|npm|pypi|hf|dop_v1|doo_v1"
    r"|shp(?:at|ca|pa|ss)|ya29|xox[a-z]|xapp|hvs|hvb|tskey|gsk|r8|pplx|nvapi|lin_api|ntn|sq0[a-z]{3}"
    r"|dckr_pat|glsa|figd|ops|dp\.(?:pt|st|ct)|PMAK|ATATT3|SG|AGE-SECRET-KEY|rubygems)"
    r"[-_.](?=[A-Za-z0-9_.=/+-]{0,16}[0-9A-Z])[A-Za-z0-9_.=/+-]{16,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|dapi[0-9a-f]{32}"
    r"|key-[0-9a-f]{32}"
    r")"
    r"|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/-]{10,}"
    r"|discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_/-]{10,}",
    re.DOTALL,
)
# Prose has words that begin like these, so the rest must look generated.
_LIKELY = re.compile(
    rf"{_BEFORE}(?:(?:sk|rk|xai)-[A-Za-z0-9_.-]{{16,}}"
    r"|(?i:bearer|basic|digest|negotiate)\s{1,8}[A-Za-z0-9+/._~=-]{8,})"
)
_USERINFO = re.compile(r"(?<=://)([^/\s:@\"']{0,256}):([^/\s@\"']{1,1024})@")
_LONE_USER = re.compile(r"(?<=://)([^/\s:@\"']{20,1024})@")

_MACHINE_MADE = re.compile(r"\d|[a-z][A-Z]|[A-Z]{2}[a-z]|[=+/]")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}){12,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_SPACE = re.compile(r"\s+")
_LAYERS = 3
_PRINTABLE_SHARE = 0.97


def cut(text: str) -> str:
    """Return the text with the marker in place of everything that has the shape of a secret."""
    text = _CERTAIN.sub(REMOVED, text)
    text = _LIKELY.sub(_if_machine_made, text)
    if "://" in text:
        text = _USERINFO.sub(rf"\1:{REMOVED}@", text)
        text = _LONE_USER.sub(_if_random, text)
    return text


def has_certain(text: str) -> bool:
    """Return whether the text has a shape that only secrets have."""
    return _CERTAIN.search(text) is not None


def is_random(text: str) -> bool:
    """Return whether a part of the text is as long and as mixed as only a generated key is."""
    return any(_is_random_part(part) for part in re.split(r"[^A-Za-z0-9+=]+", text[:4096]))


def hides(text: str, is_secret: Callable[[str], bool], layers: int = _LAYERS) -> bool:
    """Return whether a secret appears when the text is decoded, up to several times."""
    if layers == 0:
        return False
    return any(is_secret(inner) or hides(inner, is_secret, layers - 1) for inner in _decoded(text))


def _decoded(text: str) -> Iterator[str]:
    """Decodings of a text: without odd characters, percent signs, base64 or hex."""
    if not text.isascii():
        plain = "".join(
            letter
            for letter in unicodedata.normalize("NFKC", text)
            if unicodedata.category(letter) != "Cf"
        )
        if plain != text:
            yield plain
    if _PERCENT.search(text):
        yield unquote_plus(text)
    if (unbroken := _SPACE.sub("", text)) != text and _BASE64.fullmatch(unbroken):
        text = unbroken
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, binascii.unhexlify)):
        for match in pattern.finditer(text):
            inner = _as_text(match[0], decode)
            if inner is not None:
                yield inner


def _if_machine_made(match: re.Match[str]) -> str:
    rest = re.split(r"[-\s]", match[0], maxsplit=1)[1]
    return REMOVED if _MACHINE_MADE.search(rest) else match[0]


def _if_random(match: re.Match[str]) -> str:
    return f"{REMOVED}@" if is_random(match[1]) else match[0]


def _is_random_part(part: str) -> bool:
    if len(part) < 16 or not any(letter.isdigit() for letter in part):
        return False
    counts = Counter(part)
    return -sum(n / len(part) * math.log2(n / len(part)) for n in counts.values()) >= 3.0


def _from_base64(text: str) -> bytes:
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _as_text(encoded: str, decode: Callable[[str], bytes]) -> str | None:
    try:
        text = decode(encoded).decode()
    except (ValueError, binascii.Error):
        return None
    printable = sum(map(str.isprintable, text)) + text.count("\n") + text.count("\t")
    return text if len(text) >= 8 and printable >= len(text) * _PRINTABLE_SHARE else None


# ── names ───────────────────────────────────────────────────────────────────────────────────────


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Says(Enum):
    """Judgement of a value by its name."""

    NOTHING = "nothing"
    SECRET = "secret"  # noqa: S105  # a word, not a password
    #: A number about secrets or tokens: a limit, a count, a lifetime.
    AMOUNT = "amount"
    #: The place, name or kind of a secret.
    ADDRESS = "address"
    PATH = "path"
    LABEL = "label"
    IDENTIFIER = "identifier"
    #: A set of settings that are secrets unless their own name is known to be harmless.
    ENVIRONMENT = "environment"
    HEADERS = "headers"
    #: A setting that is known to be harmless, and one that names folders.
    OPEN = "open"
    OPEN_PATHS = "open paths"


_ENVIRONMENTS = word_set(
    "env envs environ environment environments envvar envvars envvariables environmentvariables "
    "dotenv extraenv secretenv buildenv runtimeenv processenv"
)
_HEADERS = word_set("header headers httpheaders requestheaders extraheaders customheaders")

# A whole word of the name.
_WORDS = word_set(
    "secret secrets token tokens password passwords passwd pwd passphrase passcode key keys apikey "
    "apikeys auth oauth authorization authorisation authentication bearer cookie cookies jwt jwts "
    "credential credentials cred creds otp totp dsn signature sig hmac mnemonic salt csrf xsrf "
    "kennwort passwort contrasena senha пароль 密码 密碼 パスワード 비밀번호"
)
# Only as the last word: `smtpPass` matches, `passRate` does not.
_LAST_WORDS = word_set("pass pin pat sid private")
# These letters anywhere, even across the words of the name.
_LETTERS = re.compile(
    r"secret|passw(?:or)?d|passphrase|passcode|token|credential|bearer|cookie|apikey|"
    r"(?:access|account|auth|client|deploy|encryption|gpg|hmac|master|priv|private|rsa|service|"
    r"session|shared|signing|ssh|storage)key|authorization|sessionid|connectionstring|connstr|"
    r"seedphrase|recoverycode|motdepasse"
)
_GLUED_PASS = re.compile(r"(?:db|database|user|admin|root|smtp|ftp|my|mail|login)pass$")
_HARMLESS = re.compile(
    r"secretar(?:y|ies|iat)|tokeni[sz](?:e|ed|er|ers|ing|ation)|tokenless|passwordless|"
    r"cookiecutter|keyless"
)
# `…Key` that is public.
_PUBLIC_BEFORE_KEY = word_set(
    "public pub primary foreign sort partition cache idempotency group routing object row hot "
    "translation index lookup shortcut"
)
_AMOUNT = word_set(
    "max maximum min minimum limit limits count counts budget usage per rate window total size "
    "length len ttl age expires expiry expiration timeout seconds minutes hours days at retries "
    "bits rotation price cost"
)
_ABOUT = {
    **dict.fromkeys(word_set("url uri endpoint host"), Says.ADDRESS),
    **dict.fromkeys(word_set("file path dir folder filename"), Says.PATH),
    **dict.fromkeys(
        word_set(
            "ref refs reference name names type kind method mode scheme provider source var "
            "variable env algorithm alg format policy prefix header field status state label scope "
            "scopes role required enabled optional"
        ),
        Says.LABEL,
    ),
    **dict.fromkeys(word_set("id ids uuid"), Says.IDENTIFIER),
}

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[\W_]+")
_DIGITS_AFTER = re.compile(r"(?<=[a-z])\d+\b")
# Letters of other alphabets (Cyrillic, Greek and a few more) that look like Latin ones.
_SMALL_LOOK_ALIKES = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u0432\u03b2\u044c",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u0451\u03b5",
    "g": "\u0261",
    "h": "\u04bb\u043d",
    "i": "\u0456\u03b9\u0131\u0457",
    "j": "\u0458",
    "k": "\u043a\u03ba",
    "l": "\u04cf",
    "m": "\u043c",
    "n": "\u03b7\u0578",
    "o": "\u043e\u03bf\u0585",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u03bd\u0475",
    "w": "\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u028f",
}
_LOOK_ALIKES = {
    ord(shape(alike)): shape(letter)
    for letter, alikes in _SMALL_LOOK_ALIKES.items()
    for alike in alikes
    for shape in (str.lower, str.upper)
    if len(shape(alike)) == 1 and not shape(alike).isascii()
}
_DIGITS_FOR_LETTERS = str.maketrans("013457$@!", "oieastsai")
_LONGEST_KEPT = 128


def says(name: str) -> Says:
    """Return the judgement of the value behind a name."""
    return _kept(name) if len(name) <= _LONGEST_KEPT else _look(name)


def _look(name: str) -> Says:
    plain = unicodedata.normalize("NFKC", name)
    if not plain.isascii():
        plain = _plain_letters(plain)
    words = [word for word in _NOT_WORD.split(_CAMEL.sub(" ", plain).lower()) if word]
    if not words:
        return Says.NOTHING
    words = [_DIGITS_AFTER.sub("", word) for word in words]
    joined = "".join(words)
    if joined in _ENVIRONMENTS or (len(words) > 1 and words[-1] in ("env", "environment")):
        # `secretEnv` holds an environment; `tokenEnv` and `apiKeyEnv` name a variable.
        return Says.LABEL if _secret_at(words[:-1]) and words[0] != "secret" else Says.ENVIRONMENT
    if joined in _HEADERS:
        return Says.HEADERS
    if not _says_secret(words, joined):
        return Says.NOTHING
    return _about(words)


_kept = lru_cache(maxsize=8192)(_look)


def _plain_letters(text: str) -> str:
    """Remove accents and invisible characters, and map look-alikes to Latin letters."""
    kept = "".join(
        letter
        for letter in unicodedata.normalize("NFD", text)
        if unicodedata.category(letter) not in ("Mn", "Cf")
    )
    if any(word in kept.casefold() for word in _WORDS if not word.isascii()):
        return "secret"
    return kept.translate(_LOOK_ALIKES)


def _says_secret(words: list[str], joined: str) -> bool:
    if _secret_at(words) or words[-1] in _LAST_WORDS:
        return True
    rest = _HARMLESS.sub("", joined)
    if _LETTERS.search(rest) or _GLUED_PASS.search(rest):
        return True
    return not rest.isalpha() and _LETTERS.search(rest.translate(_DIGITS_FOR_LETTERS)) is not None


def _secret_at(words: list[str]) -> bool:
    return any(
        word in _WORDS and not (word in ("key", "keys") and before in _PUBLIC_BEFORE_KEY)
        for before, word in zip(("", *words), words, strict=False)
    )


def _about(words: list[str]) -> Says:
    last = words[-1]
    if last in _ABOUT and len(words) > 1:
        return _ABOUT[last] if words[0] != "session" else Says.SECRET
    if "tokens" in words or any(word in _AMOUNT for word in words):
        return Says.AMOUNT
    return Says.SECRET
