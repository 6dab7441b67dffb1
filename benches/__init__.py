"""Benchmarks, run with python3 dev.py bench NAME: each module prints its figures and checks its goals."""
