"""Tests of project/dev_mail."""
