"""Measurements, run with python3 dev.py bench NAME: each is a module here that prints and judges its figures."""
