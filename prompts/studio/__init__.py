"""The Studio: an editor for one part of a prompt next to a live preview of the assembled prompt."""
