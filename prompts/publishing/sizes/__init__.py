"""Sizes of prompts: tokens and characters by section and by record, and their history."""
