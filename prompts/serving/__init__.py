"""The bot path: one statement checks the key, resolves the label and records; else nothing leaves."""

from prompts.serving.cache import Recall
from prompts.serving.errors import (
    BadKey,
    Erased,
    NotThere,
    NoVersion,
    OutOfScope,
    Refused,
    ServingDown,
)
from prompts.serving.request import PLAIN, Bot, Call, Member, Reader, Wanted
from prompts.serving.services import Served, hand_out
from prompts.serving.slots import slots_from_json, slots_json

__all__ = [
    "PLAIN",
    "BadKey",
    "Bot",
    "Call",
    "Erased",
    "Member",
    "NoVersion",
    "NotThere",
    "OutOfScope",
    "Reader",
    "Recall",
    "Refused",
    "Served",
    "ServingDown",
    "Wanted",
    "hand_out",
    "slots_from_json",
    "slots_json",
]
