"""Tests of the project package: settings, deployment, database, backup, metrics and documentation."""
