"""What can be done with prompts: build, label, release, hand out, prove."""
