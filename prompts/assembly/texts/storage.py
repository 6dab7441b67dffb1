"""The guide for choosing among the four kinds of storage."""

STORAGE_GUIDE = """\
What you do not write down is gone when this run ends. Four places keep things, each for its own kind:

- Files hold work: drafts, data, notes too long to remember. Look for a file that exists before you add one.
- Instructions hold how you work. Change them only when you are asked to behave differently from now on.
- Memory holds short facts that other runs and other agents need: names, preferences, decisions. One fact \
each, and no secrets.
- Triggers hold what must happen later or again. Set one instead of promising to come back.

If none of the four fits, it probably need not be kept.\
"""
