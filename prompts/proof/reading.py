"""Typed values from JSON that strangers hand in; ValueError says where it is wrong."""
