"""Records: base models, services, revisions, forms and pages shared by all kinds of records."""
