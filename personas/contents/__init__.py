"""Texts stored once by digest."""
