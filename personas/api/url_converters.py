"""What stands in addresses besides plain slugs and numbers: names with dots, and digests."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """The names of tools and skills may hold dots."""

    regex = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


class DigestConverter(StringConverter):
    """SHA-256 as it is written everywhere: small letters."""

    regex = r"[0-9a-f]{64}"


register_converter(NameConverter, "word")
register_converter(DigestConverter, "digest")
