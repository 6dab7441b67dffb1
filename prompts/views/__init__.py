"""The pages of versions, labels and releases."""
