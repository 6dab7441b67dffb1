"""What all records share: models, services, revisions, pages."""
