"""Notes what a person with open developer tools would frown at: errors, policy breaches, foreign hosts."""

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Request, Response, WebError

HOME = {"127.0.0.1", "localhost"}
# Chromium reports some breaches of the policy to the page only.
TELL_OF_BREACHES = (
    "addEventListener('securitypolicyviolation', e => "
    "console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))"
)


class Watch:
    """Notes whatever a person with open developer tools would frown at."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.refused: set[str] = set()

    def note(self, event: str, seen: Any) -> None:
        """Something that happened in a window, by Playwright's name for it."""
        match event:
            case "console":
                self.hear(seen)
            case "weberror":
                self.stumble(seen)
            case "request":
                self.see(seen)
            case "response":
                self.note_refusal(seen)

    def stumble(self, error: WebError) -> None:
        self.complaints.append(f"script error: {error.error}")

    def hear(self, message: ConsoleMessage) -> None:
        # A form or page that is refused on purpose makes Chromium mention the status of the page itself.
        expected = message.text.startswith("Failed to load resource") and self.is_refused(message)
        if message.type == "error" and not expected:
            self.complaints.append(f"console: {message.text} ({message.location['url']})")

    def is_refused(self, message: ConsoleMessage) -> bool:
        return message.location["url"] in self.refused

    def see(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.hostname not in HOME:
            self.complaints.append(f"foreign host: {request.url}")

    def note_refusal(self, response: Response) -> None:
        if 400 <= response.status < 500 and response.request.is_navigation_request():
            self.refused.add(response.url)
