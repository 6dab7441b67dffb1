"""The pure core that turns inputs into prompts: standard library only."""
