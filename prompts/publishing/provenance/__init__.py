"""Where the text of a prompt comes from, and where a record is used."""
