"""The demo workspace: records in YAML under cast/, and context files under tree/."""

DEMO_EMAIL = "alice@example.com"
# This password may be public: the demo is for local use, and production refuses to load it.
DEMO_PASSWORD = "under-the-larkfell"  # noqa: S105
