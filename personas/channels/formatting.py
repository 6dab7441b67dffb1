"""The formatting rules that built-in channels start with; a workspace may rewrite its own copy."""

TELEGRAM = """\
Telegram shows a small part of Markdown. Keep to it:
- *bold* with single asterisks, _italic_ with underscores, `code` in backticks, longer code in a fenced block.
- Links as [words](address). No headings, tables, footnotes or nested lists: they arrive as raw signs.
- A list is a few short lines that each begin with a dash.
- Stay under 4,000 characters in one message; put the point into the first line, for a phone.\
"""

BUILT_IN_FORMATTING = {"telegram": TELEGRAM}
