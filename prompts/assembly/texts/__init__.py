"""Fixed texts of the layouts: default soul, storage guide, execution routing, language reference."""
