"""`manage.py distribute`: put the workspace into every key, and with Citus spread tables over nodes."""
