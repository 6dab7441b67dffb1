"""The programs' door: what all resources of the API share, and the resources of personas."""
