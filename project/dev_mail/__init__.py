"""Emails of a development server: files in var/mail, shown at /dev/mail/. Never in production."""
