"""The demo workspace: records in YAML under cast/, and context files under tree/."""

DEMO_EMAIL = "alice@example.com"
# This password may be public: the demo is for local use, and `load_demo` refuses to run in production.
DEMO_PASSWORD = "under-the-larkfell"  # noqa: S105
