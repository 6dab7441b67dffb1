"""Serve prompts: one SQL statement checks the key, resolves the label and writes the ledger row.

No prompt is served without its ledger row.
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
from prompts.serving.services import ServedPrompt, serve_prompt
from prompts.serving.slots import slots_from_json, slots_json

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
    "serve_prompt",
    "slots_from_json",
    "slots_json",
]
