"""Frames around the body of a part: a tag, a heading, or nothing."""

from collections.abc import Callable

from prompts.assembly.segments import TextChunk, TextChunks
from prompts.assembly.text import build_closing_pattern, build_loose_closing_pattern

Frame = Callable[[TextChunks], TextChunks]


class TextFrame:
    """A frame of constant text before and after the body; closing forms of `tag` in the body are escaped."""

    def __init__(self, opening: str = "", ending: str = "", tag: str = "") -> None:
        self.opening, self.ending, self.tag = opening, ending, tag
        self.before = [TextChunk(opening)] if opening else []
        self.after = [TextChunk(ending)] if ending else []
        self.may_close = build_loose_closing_pattern(tag).search

    def __call__(self, body: TextChunks) -> TextChunks:
        if self.tag and self.is_closed_by("".join([text for text, _ in body])):
            body = self.escape_body(body)
        return [*self.before, *body, *self.after]

    def is_closed_by(self, text: str) -> bool:
        """Tell whether a text, usually all chunks of a body joined, may contain the closing tag."""
        if not self.tag or "<" not in text:
            return False
        # Faster than the regular expression, but correct for ASCII only: the expression ignores case, and
        # then non-ASCII letters such as U+017F (long s) match ASCII letters.
        if text.isascii() and self.tag.lower() not in text.lower():
            return False
        return self.may_close(text) is not None

    def escape_body(self, body: TextChunks) -> TextChunks:
        inside = build_closing_pattern(self.tag)
        return [(inside.sub(r"&lt;\1", text), origin) for text, origin in body]


def leave_unframed(body: TextChunks) -> TextChunks:
    """Return the body without a frame."""
    return body


def build_tag_frame(name: str) -> TextFrame:
    """Build a frame with `<name>` and `</name>` on separate lines; closing tags in the body are escaped."""
    return TextFrame(f"<{name}>\n", f"\n</{name}>", name)


def build_heading_frame(heading: str, gap: str = "\n\n") -> TextFrame:
    """Build a frame with a Markdown heading above the body."""
    return TextFrame(f"{heading}{gap}")


def build_fixed_heading_frame(heading: str) -> Frame:
    """Build a frame with a Markdown heading that is kept when the body is empty."""
    above, alone = build_heading_frame(heading), (TextChunk(heading),)
    return lambda body: above(body) if body[0][0] else alone


def wrap_in_tag(name: str, body: str) -> str:
    """Wrap plain text in a tag, for slots, whose renderers return plain text; empty text stays empty."""
    kept = build_closing_pattern(name).sub(r"&lt;\1", body) if "<" in body else body
    return f"<{name}>\n{kept}\n</{name}>" if body else ""
