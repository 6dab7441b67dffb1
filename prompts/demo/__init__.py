"""The demo workspace: a believable cast, told in YAML under cast/ and files under tree/."""

DEMO_EMAIL = "alice@example.com"
# Known to everyone who reads this line: the demo is for one's own machine, and production refuses to load it.
DEMO_PASSWORD = "under-the-larkfell"  # noqa: S105
