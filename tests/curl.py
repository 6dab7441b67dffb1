"""A replacement of curl for machines without it."""

import shutil
import sys
from pathlib import Path

# The options that the documentation uses.
STAND_IN = """#!{python}
import sys, urllib.request
words, headers, data, url = sys.argv[1:], {{}}, None, ""
while words:
    word = words.pop(0)
    if word == "-H":
        name, _, value = words.pop(0).partition(": ")
        headers[name] = value
    elif word == "-d":
        data = words.pop(0).encode()
    elif not word.startswith("-"):
        url = word
asked = urllib.request.Request(url, data, headers)
sys.stdout.buffer.write(urllib.request.urlopen(asked, timeout=20).read())
"""


def curl_beside(folder: Path) -> Path:
    """Write a `curl` script into the folder if the machine has none; return the folder."""
    if shutil.which("curl") is None:
        script = folder / "curl"
        script.write_text(STAND_IN.format(python=sys.executable))
        script.chmod(0o700)
    return folder
