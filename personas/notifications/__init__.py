"""Notifications: which members learn of which events, in the app and by email."""
