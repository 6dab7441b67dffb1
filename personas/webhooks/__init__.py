"""Webhooks: endpoints of a workspace, and the delivery of events to them (Standard Webhooks 1.0)."""
