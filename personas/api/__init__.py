"""REST API toolkit: authentication, rate limits, validation, pagination, problems, record resources."""
