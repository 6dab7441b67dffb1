"""Who the agents are: records, people and tenants."""
