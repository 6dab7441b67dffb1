"""Tests on a real Citus: one coordinator and two workers on loopback, with tables spread by `distribute`."""
