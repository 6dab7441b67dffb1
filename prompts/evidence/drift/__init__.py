"""Compare what is released, what bots were served and what they report as loaded."""
