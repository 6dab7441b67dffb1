"""The salts of the digests of served texts, which ledger rows store."""

from collections.abc import Sequence

from core.salted_digests import salt_digest
from prompts.assembly.call_inputs import changes_inputs
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.slots import Slots
from prompts.models import LedgerEntry, PromptVersion
from prompts.proof.call_values import MissingCallValue, get_value_digests, list_value_salts
from prompts.proof.text_salts import combine_served_salts
from prompts.publishing.versions.selectors import get_text_salt
from prompts.publishing.versions.stored_inputs import InputsUnavailable, get_inputs_salt, load_input_contents
from prompts.serving.call_contents.selectors import get_call_salts, get_call_values


def get_served_salt(entry: LedgerEntry) -> str:
    """Return the salt of the served digest of a row. If something of the text was erased, it is wrong."""
    salts = get_call_salts(entry.workspace_id, entry.slots)
    return combine_served_salts(
        get_text_salt(entry.version), find_inputs_salt(entry), list_value_salts(entry.slots, salts)
    )


def find_inputs_salt(entry: LedgerEntry) -> str:
    """Return the salt of the inputs of the version if the call changed them; otherwise it is empty."""
    if not get_value_digests(entry.slots):
        return ""
    try:
        if not changes_inputs(parse_dataclass(Slots, get_call_values(entry))):
            return ""
        contents = load_input_contents(entry.version, has_erased_parts=True)
    except (InputsUnavailable, MissingCallValue):
        return ""
    return get_inputs_salt(entry.workspace_id, contents)


def find_served_entry(entries: Sequence[LedgerEntry], digest: str) -> LedgerEntry | None:
    """Return the first of these rows whose served text has this plain SHA-256."""
    if not entries:
        return None
    versions: dict[int, PromptVersion] = {entry.version_id: entry.version for entry in entries}
    text_salts = {key: get_text_salt(version) for key, version in versions.items()}
    salts = get_call_salts(entries[0].workspace_id, *[entry.slots for entry in entries])
    for entry in entries:
        values = list_value_salts(entry.slots, salts)
        salt = combine_served_salts(text_salts[entry.version_id], find_inputs_salt(entry), values)
        if salt_digest(digest, salt) == entry.served_digest:
            return entry
    return None
