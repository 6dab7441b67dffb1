"""Erasure of personal data: requests and services."""
