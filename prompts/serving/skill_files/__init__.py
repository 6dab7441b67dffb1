"""Skill files of released versions: bots read a skill as of the version that their label points to."""
