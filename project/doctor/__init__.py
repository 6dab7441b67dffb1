"""The doctor: looks at everything the product leans on, and says in a sentence what to do about it."""
