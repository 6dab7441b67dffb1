"""Markdown as HTML for pages: without raw HTML, images and headings of the document outline.

Everything that a bot reads is visible: what Markdown would hide, such as titles of links and comments written
as definitions of links, is shown as text, because a reader must see every instruction.
"""

from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from core.text.shorten import shorten_text

# Longer texts are not rendered: a text of nothing but Markdown marks takes half a second at this length.
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
        title = str(tokens[index].attrs.pop("title", ""))
        env.setdefault("titles", []).append(title)
        is_empty = tokens[index + 1].type == "link_close"
        text = escapeHtml(str(tokens[index].attrGet("href"))) if is_empty else ""
        return f"{self.renderToken(tokens, index, options, env)}{text}"

    def link_close(
        self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
    ) -> str:
        title = env["titles"].pop()
        shown = f' <span class="dr-muted">({escapeHtml(title)})</span>' if title else ""
        return f"{self.renderToken(tokens, index, options, env)}{shown}"

    def fence(self, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]) -> str:
        """Render a code block, and above it the words after the name of its language."""
        info = tokens[index].info.strip()
        shown = f'<p class="dr-muted">{escapeHtml(info)}</p>\n' if len(info.split()) > 1 else ""
        return f"{shown}{super().fence(tokens, index, options, env)}"


@cache
def get_parser() -> MarkdownIt:
    """Return the parser. It rejects links with `javascript:` and the like.

    It leaves images and definitions of links as text, and therefore also links that refer to a definition.
    """
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=PageRenderer)
    return parser.enable("table").disable(["image", "reference"])


def render_markdown(text: str) -> str:
    """Render Markdown as HTML. HTML in the text is escaped."""
    return str(get_parser().render(text))


def build_excerpt(text: str, length: int) -> str:
    """Return the beginning of a text on one line, without Markdown headings, list marks and bold marks."""
    lines = [line.strip().removeprefix("- ") for line in text[: 8 * length].splitlines()]
    excerpt = " ".join([line for line in lines if line and not line.startswith("#")]).replace("**", "")
    return shorten_text(excerpt, length)
