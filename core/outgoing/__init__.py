"""What the product sends to servers outside: HTTP requests and emails, with limits."""
