"""Figures about the running product for Prometheus; no name, word or id of a tenant is among them."""
