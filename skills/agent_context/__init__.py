"""The context of an agent: its source, effective files and skills."""
