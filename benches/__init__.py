"""Measurements, run with python3 dev.py bench NAME: each module prints its figures and judges them."""
