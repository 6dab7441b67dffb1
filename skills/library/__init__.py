"""Skills: records, discovered skills, assignment to agents, pages and API."""
