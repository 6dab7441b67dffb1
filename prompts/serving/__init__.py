"""Serve prompts to bots and members, and record each served prompt in the ledger.

No prompt is served without its ledger row. If the process has the request cached, one INSERT statement
checks that key and label are unchanged and writes the row.
"""

from prompts.serving.cache import ServingCache
from prompts.serving.errors import (
    InvalidKey,
    NoVersion,
    OutOfScope,
    PromptNotFound,
    PromptRefused,
    ServingUnavailable,
    VersionErased,
)
from prompts.serving.request import EMPTY_SLOTS, CallContext, Client, KeyClient, MemberClient, PromptRequest
from prompts.serving.services import ServedPrompt, describe_prompt, serve_prompt
from prompts.serving.slot_values import slots_from_json, slots_json

__all__ = [
    "EMPTY_SLOTS",
    "CallContext",
    "Client",
    "InvalidKey",
    "KeyClient",
    "MemberClient",
    "NoVersion",
    "OutOfScope",
    "PromptNotFound",
    "PromptRefused",
    "PromptRequest",
    "ServedPrompt",
    "ServingCache",
    "ServingUnavailable",
    "VersionErased",
    "describe_prompt",
    "serve_prompt",
    "slots_from_json",
    "slots_json",
]
