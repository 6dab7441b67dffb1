"""The Studio: one part of a prompt in an editor, and the prompt as it would be beside it."""
