"""Commands of the personas app, one module each."""
