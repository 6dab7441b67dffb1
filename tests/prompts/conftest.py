"""Fixtures for the tests of prompts: a workspace with a history."""

from tests.prompts.evidence.integrity.history_stage import history, past  # noqa: F401  # fixtures
