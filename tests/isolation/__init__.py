"""Promise R1 in parts: the stage, the routes, what each should answer, and the search for leaks."""
