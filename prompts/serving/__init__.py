"""The bot path: one statement checks the key, resolves the label and records; else nothing leaves."""

from prompts.serving.asking import PLAIN, Bot, Call, Member, Reader, Wanted
from prompts.serving.call_facts import slots_from_json, slots_json
from prompts.serving.handing import Served, hand_out
from prompts.serving.recalling import Recall
from prompts.serving.refusals import (
    BadKey,
    Erased,
    NotThere,
    NoVersion,
    OutOfScope,
    Refused,
    ServingDown,
)

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
