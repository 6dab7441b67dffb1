"""A replacement of curl for machines without it."""

import shutil
import sys
from pathlib import Path

# The options that the documentation uses.
STAND_IN = """#!{python}
import sys, urllib.request
arguments, headers, data, url = sys.argv[1:], {{}}, None, ""
while arguments:
    argument = arguments.pop(0)
    if argument == "-H":
        name, _, value = arguments.pop(0).partition(": ")
        headers[name] = value
    elif argument == "-d":
        data = arguments.pop(0).encode()
    elif not argument.startswith("-"):
        url = argument
request = urllib.request.Request(url, data, headers)
sys.stdout.buffer.write(urllib.request.urlopen(request, timeout=60).read())
"""


def curl_beside(folder: Path) -> Path:
    """Write a `curl` script into the folder if the machine has none; return the folder."""
    if shutil.which("curl") is None:
        script = folder / "curl"
        script.write_text(STAND_IN.format(python=sys.executable))
        script.chmod(0o700)
    return folder
