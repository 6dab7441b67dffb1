"""Secrets by the shape of their keys, one row each; adding one is a row."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

from skills.scanning.findings import Finder, Hit
from skills.scanning.prefilter import WORD_OF, WORD_WITH, Gate, Span, long_words

Check = Callable[[re.Match[str]], bool]

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Words that stand where a key will be: documentation is full of them.
STAND_INS = re.compile(r"example|your|placeholder|redacted|dummy|x{6}|\*{3}", re.IGNORECASE)
NO_PASSWORD = frozenset(
    (
        *("password", "passwd", "pass", "pwd", "secret", "changeme", "change-me"),
        *("admin", "root", "test", "guest", "user", "postgres", "mysql"),
    )
)
NOWHERE = re.compile(r"(?:.+\.)?example(?:\.[a-z]+)?|.+\.(?:test|invalid)", re.IGNORECASE)
BASE64_LINE = re.compile(r"[A-Za-z0-9+/]{40}")


def key_checksum(body: str) -> str:
    """Six base62 characters of the CRC32 of a key's thirty: tells a key of ours from a look-alike."""
    left, said = crc32(body.encode()), ""
    for _ in range(6):
        left, digit = divmod(left, 62)
        said = BASE62[digit] + said
    return said


def hidden(found: re.Match[str]) -> str:
    """The part that is secret: the group of that name, else the whole."""
    return found["secret"] if "secret" in found.re.groupindex else found[0]


def is_real(found: re.Match[str]) -> bool:
    """Not a row of crosses, nor a word that says where the key goes."""
    said = hidden(found)
    return len(set(said)) >= 8 and not STAND_INS.search(said)


def is_random(found: re.Match[str]) -> bool:
    """Real, and with digits: a short prefix such as `sk-` begins names of other things too."""
    return is_real(found) and sum(map(str.isdigit, found[0])) >= 3


def is_ours(found: re.Match[str]) -> bool:
    body = found["secret"]
    return key_checksum(body[:30]) == body[30:]


def is_no_key_of_ours(found: re.Match[str]) -> bool:
    return is_real(found) and not is_ours(found)


def is_key_block(found: re.Match[str]) -> bool:
    """The head alone is documentation; with a line of base64 behind it, it is a key."""
    return bool(BASE64_LINE.search(found["secret"]))


def is_password(found: re.Match[str]) -> bool:
    """Not a variable, a stand-in, a well-known default, the user's own name or a host that cannot exist."""
    said = found["secret"]
    is_variable = said[0] in "$<{[%(" or STAND_INS.search(said) or len(set(said)) < 3
    is_default = said.lower() in NO_PASSWORD or said == found["user"]
    return not is_variable and not is_default and not NOWHERE.fullmatch(found["host"])


@dataclass(frozen=True)
class Shape:
    """A kind of key: what to call it, what every such text contains, and how exactly it looks."""

    name: str
    called: str
    # Looking for one of these first is far quicker than asking the pattern.
    needles: tuple[str, ...]
    pattern: str
    check: Check = is_real
    # A simpler pattern that always fits too.
    hint: str = ""
    needs: str = WORD_OF[40]


# Not in the middle of a longer word. Quantifiers are possessive or bounded, so no text is read over and over.
BEFORE, AFTER = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
URL = (
    r"(?<![A-Za-z0-9+.-])(?:postgres(?:ql)?|mysql|mariadb|mssql|sqlserver|mongodb|rediss?|valkey|amqps?|clickhouse"
    r"|https?|ftps?|sftp|smtps?|ssh)(?:\+[a-z0-9]{1,20}+)?://"
    r"(?P<user>[^\s:@/]{0,100}+):(?P<secret>[^\s:@/]{3,200}+)@(?P<host>[\w.-]{0,253}+)"
)
KEY_BLOCK = (
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:[A-Za-z0-9+/=\s:,.()\\\"']++|-(?!-))*+)"
)
OWN = r"drm_(?:bot|admin)_(?P<secret>[0-9A-Za-z]{36})"

GITLAB = ("agent", "cbt", "dt", "ffct", "ft", "imt", "oas", "pat", "ptt", "rt", "soat")

SHAPES = (
    Shape("aws-access-key", "an AWS access key", ("AKIA", "ASIA"), r"A[KS]IA[A-Z2-7]{16}"),
    Shape(
        "github-token",
        "a GitHub token",
        tuple(f"gh{kind}_" for kind in "pousr"),
        r"gh[pousr]_[A-Za-z0-9]{36,251}+",
    ),
    Shape("github-fine-grained-token", "a GitHub token", ("github_pat_",), r"github_pat_\w{60,243}+"),
    Shape(
        "gitlab-token",
        "a GitLab token",
        tuple(f"gl{kind}-" for kind in GITLAB),
        rf"gl(?:{'|'.join(GITLAB)})-(?P<secret>[\w.-]{{20,300}}+)",
    ),
    Shape(
        "slack-token",
        "a Slack token",
        ("xox", "xapp-"),
        r"(?:xox[a-z]|xapp)-(?P<secret>[\w.-]{20,300}+)",
        is_random,
    ),
    Shape(
        "slack-webhook",
        "the address of a Slack webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|triggers|workflows)/(?P<secret>[A-Za-z0-9/]{30,200}+)",
    ),
    Shape(
        "stripe-key",
        "a Stripe key",
        ("_live_", "_test_", "whsec_"),
        r"(?:(?:sk|rk)_(?:live|test)|whsec)_(?P<secret>[A-Za-z0-9+/]{24,247}+)",
    ),
    Shape("google-api-key", "a Google API key", ("AIza",), r"AIza[\w-]{35}"),
    Shape(
        "google-oauth-secret",
        "a Google OAuth secret",
        ("GOCSPX-", "ya29."),
        r"(?:GOCSPX-[\w-]{28}|ya29\.[\w-]{40,500}+)",
    ),
    Shape(
        "openai-key",
        "an API key of the OpenAI kind",
        ("sk-",),
        r"sk-(?!ant-)(?P<secret>[\w-]{32,300}+)",
        is_random,
    ),
    Shape(
        "anthropic-key", "an Anthropic API key", ("sk-ant-",), r"sk-ant-(?P<secret>[\w-]{32,300}+)", is_random
    ),
    Shape("hugging-face-token", "a Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{34,40}+"),
    Shape("npm-token", "an npm token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    Shape("pypi-token", "a PyPI token", ("pypi-AgE",), r"pypi-AgE(?P<secret>[\w-]{50,1000}+)"),
    Shape("docker-token", "a Docker token", ("dckr_",), r"dckr_(?:pat|oat)_(?P<secret>[\w-]{27,60}+)"),
    Shape("digitalocean-token", "a DigitalOcean token", ("_v1_",), r"do[opr]_v1_(?P<secret>[0-9a-f]{64})"),
    Shape("telegram-token", "a Telegram bot token", (":AA",), r"[0-9]{8,10}:AA[\w-]{33}"),
    Shape("twilio-key", "a Twilio key", ("SK",), r"SK[0-9a-f]{32}"),
    Shape("sendgrid-key", "a SendGrid key", ("SG.",), r"SG\.[\w-]{22}\.[\w-]{43}"),
    Shape(
        "jwt",
        "a signed token (JWT)",
        (".eyJ",),
        r"eyJ[\w-]{10,4000}+\.eyJ[\w-]{10,8000}+\.[\w-]{20,1000}+",
    ),
    Shape(
        "azure-connection-string",
        "an Azure connection string",
        ("AccountKey=", "SharedAccessKey="),
        r"(?:Account|SharedAccess)Key=(?P<secret>(?:[A-Za-z0-9+/]{43}){1,2}={1,2})",
    ),
    Shape("own-key", "a key of this Dramatis", ("drm_",), OWN, is_ours),
)
OPEN_SHAPES = (
    Shape(
        "aws-secret-key",
        "an AWS secret key",
        ("ecret", "ECRET"),
        r"(?i:secret_?access_?key)[\"']?\s{0,9}+[=:]\s{0,9}+[\"']?(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
    ),
    Shape("private-key", "a private key", ("PRIVATE KEY",), KEY_BLOCK, is_key_block),
    Shape(
        "url-password",
        "an address with a password",
        ("@",),
        URL,
        is_password,
        hint=r"://[^\s:@/]{0,100}:[^\s:@/]{3,200}@",
        needs="@",
    ),
)
LOOK_ALIKE = Shape("own-key-look-alike", "a key of Dramatis", ("drm_",), OWN, is_no_key_of_ours)


def in_one_word(shape: Shape) -> Finder:
    """Looks for keys that are a word of their own; words too short for any key are not worth a look."""
    return finder(shape, rf"{BEFORE}{shape.pattern}{AFTER}", long_words)


def anywhere(shape: Shape) -> Finder:
    """Looks for what says itself where it begins and ends."""
    return finder(shape, shape.pattern, lambda text: [(0, len(text))])


def finder(shape: Shape, expression: str, places: Callable[[str], Iterable[Span]]) -> Finder:
    pattern = re.compile(expression, re.ASCII)
    secret = "secret" if "secret" in pattern.groupindex else 0

    def find(text: str) -> Iterator[Hit]:
        for start, end in places(text):
            if any(text.find(needle, start, end) >= 0 for needle in shape.needles):
                fits = filter(shape.check, pattern.finditer(text, start, end))
                yield from (Hit(*found.span(), secret=found.span(secret)) for found in fits)

    return find


def needed_sign(shape: Shape) -> str:
    """A single sign is sooner looked for than a word: a rare one that all its needles have."""
    common = (name for sign, name in WORD_WITH.items() if all(sign in needle for needle in shape.needles))
    return next(common, WORD_OF[20])


def among_long_words(shape: Shape) -> Gate:
    return lambda look: any(map(look.long_words.__contains__, shape.needles))


def among_all(shape: Shape) -> Gate:
    hint = re.compile(shape.hint, re.ASCII)

    return lambda look: any(map(look.text.__contains__, shape.needles)) and bool(hint.search(look.text))
