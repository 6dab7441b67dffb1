"""User accounts: sign-in limits, known devices, security events, second factors encrypted at rest."""
