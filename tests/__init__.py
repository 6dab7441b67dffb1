"""Tests of the product, against real servers."""
