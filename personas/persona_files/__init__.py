"""IDENTITY.md, SOUL.md and USER.md: format, import and export."""
