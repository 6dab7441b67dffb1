"""The questions asked about skills, sources and files; every one names its workspace."""

from skills.selectors.skills import skills_of

__all__ = ["skills_of"]
