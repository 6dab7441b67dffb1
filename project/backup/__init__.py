"""Backups: one moment of the database with all that proves it, in a folder that is whole or not there."""
