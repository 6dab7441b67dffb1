"""What stands around a body: a tag, a heading, or nothing."""

from collections.abc import Callable

from prompts.assembly.segments import TextChunk, TextChunks
from prompts.assembly.text import build_closing_pattern, build_loose_closing_pattern

Frame = Callable[[TextChunks], TextChunks]


class TextFrame:
    """The frame of most parts: the same words before every body and after it, and a tag it cannot close."""

    def __init__(self, opening: str = "", ending: str = "", tag: str = "") -> None:
        self.opening, self.ending, self.tag = opening, ending, tag
        self.before = [TextChunk(opening)] if opening else []
        self.after = [TextChunk(ending)] if ending else []
        self.may_close = build_loose_closing_pattern(tag).search

    def __call__(self, body: TextChunks) -> TextChunks:
        if self.tag and self.is_closed_by("".join([text for text, _ in body])):
            body = self.kept_inside(body)
        return [*self.before, *body, *self.after]

    def is_closed_by(self, text: str) -> bool:
        """Whether a body may close the tag; one look at all of it spares one at every piece."""
        if not self.tag or "<" not in text:
            return False
        # Quicker than a pattern, and safe in ASCII only: elsewhere letters have twins, such as the long s.
        if text.isascii() and self.tag.lower() not in text.lower():
            return False
        return self.may_close(text) is not None

    def kept_inside(self, body: TextChunks) -> TextChunks:
        inside = build_closing_pattern(self.tag)
        return [(inside.sub(r"&lt;\1", text), origin) for text, origin in body]


def leave_unframed(body: TextChunks) -> TextChunks:
    """The words alone."""
    return body


def build_tag_frame(name: str) -> TextFrame:
    """`<name>` on a line of its own, the body, `</name>`; nothing in the body can close it."""
    return TextFrame(f"<{name}>\n", f"\n</{name}>", name)


def build_heading_frame(words: str, gap: str = "\n\n") -> TextFrame:
    """A Markdown heading above the body."""
    return TextFrame(f"{words}{gap}")


def build_fixed_heading_frame(words: str) -> Frame:
    """A Markdown heading that stays even over nothing."""
    above, alone = build_heading_frame(words), (TextChunk(words),)
    return lambda body: above(body) if body[0][0] else alone


def wrap_in_tag(name: str, body: str) -> str:
    """The same tag around plain text, for what is rendered per call."""
    kept = build_closing_pattern(name).sub(r"&lt;\1", body) if "<" in body else body
    return f"<{name}>\n{kept}\n</{name}>" if body else ""
