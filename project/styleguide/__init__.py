"""The style guide page, and its colour contrast calculation."""
