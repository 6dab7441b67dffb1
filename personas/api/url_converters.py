"""Django URL path converters for names with dots and for SHA-256 digests."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """Match the name of a tool or skill, which may contain dots."""

    regex = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


class DigestConverter(StringConverter):
    """Match a SHA-256 digest in lower-case hexadecimal."""

    regex = r"[0-9a-f]{64}"


register_converter(NameConverter, "word")
register_converter(DigestConverter, "digest")
