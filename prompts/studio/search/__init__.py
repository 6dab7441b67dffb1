"""Search over records, versions, releases and members."""
