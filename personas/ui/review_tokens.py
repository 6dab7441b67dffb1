"""Signed tokens that prove that a member has seen the review of an action."""

from django.core import signing

# Form field of the token.
REVIEWED_FIELD = "reviewed"
# The effect in the token of an undo button: it restores what was in production before a reviewed action.
UNDO_EFFECT = "undo"
MAX_AGE_SECONDS = 12 * 3600
SALT = "prompts.review"


def create_review_token(user_id: int, path: str, effect: str) -> str:
    """Create the token of a review: this user has seen this effect of a POST to this path."""
    return signing.dumps([user_id, path, effect], salt=SALT)


def read_review_token(token: str, user_id: int, path: str) -> str | None:
    """Return the effect that the user has seen; None if the token is invalid, or of another action."""
    try:
        data = signing.loads(token, salt=SALT, max_age=MAX_AGE_SECONDS)
    except signing.BadSignature:
        return None
    if not isinstance(data, list) or data[:2] != [user_id, path]:
        return None
    return str(data[2])
