"""Markdown as HTML for pages: without raw HTML, images and headings of the document outline."""

from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from core.text.shorten import shorten_text

# Longer texts are shown as they are: a text of marks alone takes half a second at this length.
MAX_RENDERED_LENGTH = 20_000


class PageRenderer(RendererHTML):
    """Render headings as paragraphs with a class.

    A heading of the text would be part of the outline of the page, at a level that does not fit there.
    """

    def heading_open(
        self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]
    ) -> str:
        return f'<p class="dr-md-heading dr-md-{tokens[index].tag}">'

    def heading_close(
        self, _tokens: Sequence[Token], _index: int, _options: Any, _env: MutableMapping[str, Any]
    ) -> str:
        return "</p>\n"

    def link_open(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        tokens[index].attrSet("rel", "nofollow noopener noreferrer")
        tokens[index].attrSet("class", "dr-link")
        return self.renderToken(tokens, index, options, env)


@cache
def get_parser() -> MarkdownIt:
    """Return the parser. It rejects links with `javascript:` and the like, and leaves images as text."""
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=PageRenderer)
    return parser.enable("table").disable("image")


def render_markdown(text: str) -> str:
    """Render Markdown as HTML. HTML in the text is escaped."""
    return str(get_parser().render(text))


def build_excerpt(text: str, length: int) -> str:
    """Return the beginning of a text on one line, without Markdown headings, list marks and bold marks."""
    lines = [line.strip().removeprefix("- ") for line in text[: 8 * length].splitlines()]
    excerpt = " ".join([line for line in lines if line and not line.startswith("#")]).replace("**", "")
    return shorten_text(excerpt, length)
