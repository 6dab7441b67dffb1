"""What stands around a body: a tag, a heading, or nothing."""

from collections.abc import Callable, Sequence

from prompts.assembly.pieces import Piece
from prompts.assembly.text import closing

Frame = Callable[[Sequence[Piece]], Sequence[Piece]]


def bare(body: Sequence[Piece]) -> Sequence[Piece]:
    """The words alone."""
    return body


def tag(name: str) -> Frame:
    """`<name>` on a line of its own, the body, `</name>`; nothing in the body can close it."""
    opening, ending, inside = Piece(f"<{name}>\n"), Piece(f"\n</{name}>"), closing(name)

    def frame(body: Sequence[Piece]) -> Sequence[Piece]:
        kept = [
            piece if "<" not in piece.text else Piece(inside.sub(r"&lt;\1", piece.text), piece.origin)
            for piece in body
        ]
        return [opening, *kept, ending]

    return frame


def heading(words: str, gap: str = "\n\n") -> Frame:
    """A Markdown heading above the body."""
    opening = Piece(f"{words}{gap}")

    def frame(body: Sequence[Piece]) -> Sequence[Piece]:
        return [opening, *body]

    return frame


def standing(words: str) -> Frame:
    """A Markdown heading that stays even over nothing."""
    opening, alone = Piece(f"{words}\n\n"), (Piece(words),)

    def frame(body: Sequence[Piece]) -> Sequence[Piece]:
        return [opening, *body] if body[0].text else alone

    return frame


def tagged(name: str, body: str) -> str:
    """The same tag around plain text, for what is rendered per call."""
    kept = closing(name).sub(r"&lt;\1", body)
    return f"<{name}>\n{kept}\n</{name}>" if body else ""
