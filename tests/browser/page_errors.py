"""Collects browser errors: console and script errors, policy violations, requests to foreign hosts."""

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Request, Response, WebError

LOCAL_HOSTS = {"127.0.0.1", "localhost"}
# Chromium reports some content security policy violations to the page only.
REPORT_POLICY_VIOLATIONS = (
    "addEventListener('securitypolicyviolation', e => "
    "console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))"
)


class PageErrors:
    """Error messages of one test's pages."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.expected_urls: set[str] = set()
        self.expected_patterns: list[str] = []

    def expect(self, pattern: str) -> None:
        """Ignore console messages that match. Call it first: they may arrive after the test's last line."""
        self.expected_patterns.append(pattern)

    def add(self, event: str, item: Any) -> None:
        """Check one browser event, named as in Playwright."""
        match event:
            case "console":
                self.add_console_message(item)
            case "weberror":
                self.add_script_error(item)
            case "request":
                self.check_host(item)
            case "response":
                self.add_expected_url(item)

    def add_script_error(self, error: WebError) -> None:
        self.messages.append(f"script error: {error.error}")

    def add_console_message(self, message: ConsoleMessage) -> None:
        # Chromium also logs the 4xx status of a page itself, which tests cause on purpose.
        is_status_message = message.text.startswith("Failed to load resource") and self.is_expected(message)
        text = f"console: {message.text} ({message.location['url']})"
        is_expected = any(re.search(pattern, text) for pattern in self.expected_patterns)
        if message.type == "error" and not is_status_message and not is_expected:
            self.messages.append(text)

    def is_expected(self, message: ConsoleMessage) -> bool:
        return message.location["url"] in self.expected_urls

    def check_host(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.hostname not in LOCAL_HOSTS:
            self.messages.append(f"foreign host: {request.url}")

    def add_expected_url(self, response: Response) -> None:
        if 400 <= response.status < 500 and response.request.is_navigation_request():
            self.expected_urls.add(response.url)
