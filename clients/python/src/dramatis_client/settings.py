"""Settings of a client: its arguments, or else environment variables."""

import os
from dataclasses import dataclass, field
from pathlib import Path

URL, KEY, CACHE_DIR = "DRAMATIS_URL", "DRAMATIS_KEY", "DRAMATIS_CACHE_DIR"
TIMEOUT, ATTEMPTS = "DRAMATIS_TIMEOUT", "DRAMATIS_ATTEMPTS"
DEFAULT_TIMEOUT = 5.0
DEFAULT_ATTEMPTS = 3


@dataclass(frozen=True)
class CallOptions:
    """Timeout in seconds and number of attempts of one call; None means the value of the client."""

    timeout: float | None = None
    attempts: int | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError("The timeout must be greater than 0.")
        if self.attempts is not None and self.attempts < 1:
            raise ValueError("At least one attempt is required.")


NO_OPTIONS = CallOptions()


@dataclass(frozen=True)
class ClientSettings:
    """Address of the server, API key, folder of the disk cache (None for none), timeout and attempts."""

    url: str
    key: str = field(repr=False)
    cache_dir: Path | None
    timeout: float
    attempts: int


def load_settings(
    url: str | None,
    key: str | None,
    cache_dir: str | Path | None,
    timeout: float | None,
    attempts: int | None,
) -> ClientSettings:
    """Return the settings; an argument that is None is read from its environment variable."""
    folder = os.environ.get(CACHE_DIR, "") if cache_dir is None else cache_dir
    options = CallOptions(
        parse_number(TIMEOUT, DEFAULT_TIMEOUT) if timeout is None else timeout,
        int(parse_number(ATTEMPTS, DEFAULT_ATTEMPTS)) if attempts is None else attempts,
    )
    return ClientSettings(
        require_setting(URL, "url") if url is None else url,
        (require_setting(KEY, "key") if key is None else key).strip(),
        Path(folder).expanduser() if folder else None,
        options.timeout or DEFAULT_TIMEOUT,
        options.attempts or DEFAULT_ATTEMPTS,
    )


def require_setting(variable: str, argument: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ValueError(f"Set {variable}, or pass `{argument}`.")
    return value


def parse_number(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise ValueError(f"{variable} must be a number.") from None
