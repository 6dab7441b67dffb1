"""Members, invitations and roles in a workspace."""
