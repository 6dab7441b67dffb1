"""Commands: backup, create_db_role, doctor, restore and up."""
