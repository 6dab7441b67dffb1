"""Secret detection: one pattern per kind of API key, token or password."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from zlib import crc32

from skills.scanning.findings import MatchFinder, RuleMatch
from skills.scanning.prefilter import (
    RARE_CHARACTER_FEATURES,
    WORD_LENGTH_FEATURES,
    RulePrefilter,
    Span,
    find_long_words,
)

MatchCheck = Callable[[re.Match[str]], bool]

BASE62_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Placeholders for keys, common in documentation.
PLACEHOLDER_PATTERN = re.compile(r"example|your|placeholder|redacted|dummy|x{6}|\*{3}", re.IGNORECASE)
DEFAULT_PASSWORDS = frozenset(
    (
        *("password", "passwd", "pass", "pwd", "secret", "changeme", "change-me"),
        *("admin", "root", "test", "guest", "user", "postgres", "mysql"),
    )
)
EXAMPLE_HOST_PATTERN = re.compile(r"(?:.+\.)?example(?:\.[a-z]+)?|.+\.(?:test|invalid)", re.IGNORECASE)
BASE64_LINE_PATTERN = re.compile(r"[A-Za-z0-9+/]{40}")


def compute_key_checksum(body: str) -> str:
    """Return the checksum that ends a Dramatis API key: the CRC-32 of the 30 characters before, in base62."""
    remainder, checksum = crc32(body.encode()), ""
    for _ in range(6):
        remainder, digit = divmod(remainder, 62)
        checksum = BASE62_ALPHABET[digit] + checksum
    return checksum


def get_secret_part(match: re.Match[str]) -> str:
    """Return the group "secret" if the pattern has one, otherwise the whole match."""
    return match["secret"] if "secret" in match.re.groupindex else match[0]


def is_real_secret(match: re.Match[str]) -> bool:
    """Return whether the secret is no placeholder and has at least eight different characters."""
    secret = get_secret_part(match)
    return len(set(secret)) >= 8 and not PLACEHOLDER_PATTERN.search(secret)


def is_random_secret(match: re.Match[str]) -> bool:
    """Like `is_real_secret`, but require at least three digits.

    This is for keys with a short prefix such as `sk-`, with which ordinary names can also begin.
    """
    return is_real_secret(match) and sum(map(str.isdigit, match[0])) >= 3


def is_own_key(match: re.Match[str]) -> bool:
    body = match["secret"]
    return compute_key_checksum(body[:30]) == body[30:]


def is_own_key_look_alike(match: re.Match[str]) -> bool:
    return is_real_secret(match) and not is_own_key(match)


def is_key_block(match: re.Match[str]) -> bool:
    """Return whether a line of base64 follows the header of a private key.

    The header alone is not a secret: it often occurs in documentation.
    """
    return bool(BASE64_LINE_PATTERN.search(match["secret"]))


def is_real_password(match: re.Match[str]) -> bool:
    """Reject variables, placeholders, default passwords, the user name, and example hosts."""
    password = match["secret"]
    is_variable = password[0] in "$<{[%(" or PLACEHOLDER_PATTERN.search(password) or len(set(password)) < 3
    is_default = password.lower() in DEFAULT_PASSWORDS or password == match["user"]
    return not is_variable and not is_default and not EXAMPLE_HOST_PATTERN.fullmatch(match["host"])


@dataclass(frozen=True)
class SecretPattern:
    """A kind of secret, found with a regex."""

    name: str
    label: str
    # Every match contains at least one of these substrings. Searching for them first is much faster than
    # running the regex on every text.
    needles: tuple[str, ...]
    pattern: str
    check: MatchCheck = is_real_secret
    # A simpler and faster regex that matches every text in which `pattern` matches.
    hint: str = ""
    # The text feature (see prefilter.py) without which the pattern cannot match.
    needs: str = WORD_LENGTH_FEATURES[40]


# Word boundaries of a token. Quantifiers in the patterns below are possessive or bounded, so that matching
# takes linear time.
WORD_START_REGEX, WORD_END_REGEX = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
URL_CREDENTIALS_REGEX = (
    r"(?<![A-Za-z0-9+.-])(?:postgres(?:ql)?|mysql|mariadb|mssql|sqlserver|mongodb|rediss?|valkey|amqps?|clickhouse"
    r"|https?|ftps?|sftp|smtps?|ssh)(?:\+[a-z0-9]{1,20}+)?://"
    r"(?P<user>[^\s:@/]{0,100}+):(?P<secret>[^\s:@/]{3,200}+)@(?P<host>[\w.-]{0,253}+)"
)
PRIVATE_KEY_REGEX = (
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:[A-Za-z0-9+/=\s:,.()\\\"']++|-(?!-))*+)"
)
OWN_KEY_REGEX = r"drm_(?:bot|admin)_(?P<secret>[0-9A-Za-z]{36})"

GITLAB_TOKEN_KINDS = ("agent", "cbt", "dt", "ffct", "ft", "imt", "oas", "pat", "ptt", "rt", "soat")

TOKEN_PATTERNS = (
    SecretPattern("aws-access-key", "an AWS access key", ("AKIA", "ASIA"), r"A[KS]IA[A-Z2-7]{16}"),
    SecretPattern(
        "github-token",
        "a GitHub token",
        tuple(f"gh{kind}_" for kind in "pousr"),
        r"gh[pousr]_[A-Za-z0-9]{36,251}+",
    ),
    SecretPattern("github-fine-grained-token", "a GitHub token", ("github_pat_",), r"github_pat_\w{60,243}+"),
    SecretPattern(
        "gitlab-token",
        "a GitLab token",
        tuple(f"gl{kind}-" for kind in GITLAB_TOKEN_KINDS),
        rf"gl(?:{'|'.join(GITLAB_TOKEN_KINDS)})-(?P<secret>[\w.-]{{20,300}}+)",
    ),
    SecretPattern(
        "slack-token",
        "a Slack token",
        ("xox", "xapp-"),
        r"(?:xox[a-z]|xapp)-(?P<secret>[\w.-]{20,300}+)",
        is_random_secret,
    ),
    SecretPattern(
        "slack-webhook",
        "the URL of a Slack webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|triggers|workflows)/(?P<secret>[A-Za-z0-9/]{30,200}+)",
    ),
    SecretPattern(
        "stripe-key",
        "a Stripe key",
        ("_live_", "_test_", "whsec_"),
        r"(?:(?:sk|rk)_(?:live|test)|whsec)_(?P<secret>[A-Za-z0-9+/]{24,247}+)",
    ),
    SecretPattern("google-api-key", "a Google API key", ("AIza",), r"AIza[\w-]{35}"),
    SecretPattern(
        "google-oauth-secret",
        "a Google OAuth secret",
        ("GOCSPX-", "ya29."),
        r"(?:GOCSPX-[\w-]{28}|ya29\.[\w-]{40,500}+)",
    ),
    SecretPattern(
        "openai-key",
        "an OpenAI-style API key",
        ("sk-",),
        r"sk-(?!ant-)(?P<secret>[\w-]{32,300}+)",
        is_random_secret,
    ),
    SecretPattern(
        "anthropic-key",
        "an Anthropic API key",
        ("sk-ant-",),
        r"sk-ant-(?P<secret>[\w-]{32,300}+)",
        is_random_secret,
    ),
    SecretPattern("hugging-face-token", "a Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{34,40}+"),
    SecretPattern("npm-token", "an npm token", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    SecretPattern("pypi-token", "a PyPI token", ("pypi-AgE",), r"pypi-AgE(?P<secret>[\w-]{50,1000}+)"),
    SecretPattern(
        "docker-token", "a Docker token", ("dckr_",), r"dckr_(?:pat|oat)_(?P<secret>[\w-]{27,60}+)"
    ),
    SecretPattern(
        "digitalocean-token", "a DigitalOcean token", ("_v1_",), r"do[opr]_v1_(?P<secret>[0-9a-f]{64})"
    ),
    SecretPattern("telegram-token", "a Telegram bot token", (":AA",), r"[0-9]{8,10}:AA[\w-]{33}"),
    SecretPattern("twilio-key", "a Twilio key", ("SK",), r"SK[0-9a-f]{32}"),
    SecretPattern("sendgrid-key", "a SendGrid key", ("SG.",), r"SG\.[\w-]{22}\.[\w-]{43}"),
    SecretPattern(
        "jwt",
        "a signed token (JWT)",
        (".eyJ",),
        r"eyJ[\w-]{10,4000}+\.eyJ[\w-]{10,8000}+\.[\w-]{20,1000}+",
    ),
    SecretPattern(
        "azure-connection-string",
        "an Azure connection string",
        ("AccountKey=", "SharedAccessKey="),
        r"(?:Account|SharedAccess)Key=(?P<secret>(?:[A-Za-z0-9+/]{43}){1,2}={1,2})",
    ),
    SecretPattern(
        "own-key", "an API key of this Dramatis installation", ("drm_",), OWN_KEY_REGEX, is_own_key
    ),
)
EMBEDDED_SECRET_PATTERNS = (
    SecretPattern(
        "aws-secret-key",
        "an AWS secret key",
        ("ecret", "ECRET"),
        r"(?i:secret_?access_?key)[\"']?\s{0,9}+[=:]\s{0,9}+[\"']?(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
    ),
    SecretPattern("private-key", "a private key", ("PRIVATE KEY",), PRIVATE_KEY_REGEX, is_key_block),
    SecretPattern(
        "url-password",
        "a URL with a password",
        ("@",),
        URL_CREDENTIALS_REGEX,
        is_real_password,
        hint=r"://[^\s:@/]{0,100}:[^\s:@/]{3,200}@",
        needs="@",
    ),
)
OWN_KEY_LOOK_ALIKE = SecretPattern(
    "own-key-look-alike", "a Dramatis API key", ("drm_",), OWN_KEY_REGEX, is_own_key_look_alike
)


def build_token_finder(secret_pattern: SecretPattern) -> MatchFinder:
    """Build a finder for tokens that are a whole word. Words that are too short for a token are skipped."""
    return build_secret_finder(
        secret_pattern, rf"{WORD_START_REGEX}{secret_pattern.pattern}{WORD_END_REGEX}", find_long_words
    )


def build_embedded_finder(secret_pattern: SecretPattern) -> MatchFinder:
    """Build a finder for secrets whose pattern has its own delimiters."""
    return build_secret_finder(secret_pattern, secret_pattern.pattern, lambda text: [(0, len(text))])


def build_secret_finder(
    secret_pattern: SecretPattern, expression: str, list_spans: Callable[[str], Iterable[Span]]
) -> MatchFinder:
    pattern = re.compile(expression, re.ASCII)
    secret_group = "secret" if "secret" in pattern.groupindex else 0

    def find(text: str) -> Iterator[RuleMatch]:
        for start, end in list_spans(text):
            if any(text.find(needle, start, end) >= 0 for needle in secret_pattern.needles):
                valid_matches = filter(secret_pattern.check, pattern.finditer(text, start, end))
                yield from (
                    RuleMatch(*match.span(), secret=match.span(secret_group)) for match in valid_matches
                )

    return find


def get_required_feature(secret_pattern: SecretPattern) -> str:
    """Return a text feature that is present whenever the pattern matches.

    This is a rare character that all needles contain, otherwise the minimum length of a word. Checking a
    feature is cheaper than searching the text for substrings.
    """
    common = (
        name
        for sign, name in RARE_CHARACTER_FEATURES.items()
        if all(sign in needle for needle in secret_pattern.needles)
    )
    return next(common, WORD_LENGTH_FEATURES[20])


def build_token_prefilter(secret_pattern: SecretPattern) -> RulePrefilter:
    return lambda features: any(map(features.long_words.__contains__, secret_pattern.needles))


def build_embedded_prefilter(secret_pattern: SecretPattern) -> RulePrefilter:
    hint = re.compile(secret_pattern.hint, re.ASCII)

    return lambda features: (
        any(map(features.text.__contains__, secret_pattern.needles)) and bool(hint.search(features.text))
    )
