"""Build, store and serve prompts.

This module imports nothing, so that pure packages such as `prompts.assembly` can be used without Django.
"""
