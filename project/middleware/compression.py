"""Middleware that compresses pages and lists of the API with gzip."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

PAGE_TYPE = "text/html"
LIST_TYPE = "application/json"
SAFE_METHODS = ("GET", "HEAD")
SECRETS_PREFIX = "/accounts/"


class CompressionMiddleware(GZipMiddleware):
    """Compress pages, and lists of the API, if the client accepts gzip.

    The length of a compressed page can reveal a secret in it to an attacker who chooses a part of the page
    and sees many responses (BREACH). Therefore Django adds up to 100 random bytes to each response and masks
    the CSRF token, and session cookies are SameSite=Lax: other sites can only open pages, one at a time.
    Pages where second factors are set up are not compressed.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if is_compressible(request, response):
            return super().process_response(request, response)
        return response


def is_compressible(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Return whether the response is a page, or JSON for a GET without an ETag, such as a list.

    The public OpenAPI document is compressed too; its ETag is weak.
    Prompts for bots have an ETag or are responses to a POST, so they are never compressed.
    Compression makes a strong ETag weak. The API compares If-Match with strong comparison, so a client could
    not send such an ETag back. Pages may have a weak one, because it is only used for If-None-Match.
    """
    if response.streaming or request.path_info.startswith(SECRETS_PREFIX):
        return False
    content_type = response.get("Content-Type", "").partition(";")[0]
    is_public = response.get("Cache-Control", "").startswith("public")
    is_json = content_type == LIST_TYPE and request.method in SAFE_METHODS
    return (is_json and (is_public or not response.has_header("ETag"))) or content_type == PAGE_TYPE
