"""The verbs: what people, bots and jobs can do to records."""
