"""Inputs of an ordinary agent, 16 KB: 12 sections, 20 memories, 30 skills, 5 context files; and two calls.

No text holds a character that HTML escaping would change, so a template with autoescape gives the same text.
"""

from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from prompts.assembly.inputs import (
    ChannelInput,
    ContextFileInput,
    Data,
    IdentityInput,
    MemoryInput,
    PromptInputs,
    ResponsibilityInput,
    SkillInput,
    Text,
    ToolInput,
    UserProfileInput,
)
from prompts.assembly.segments import Origin
from prompts.assembly.slots import PreviousError, Session, Slots, StepInput, TaskInput

SENTENCES = (
    "Parcels that leave before noon arrive on the following working day.",
    "Ask for the order number before you look anything up, and repeat it in the answer.",
    "A refund above fifty euros needs a second pair of eyes.",
    "Prices are shown with tax; invoices list it in a line of its own.",
    "Write dates in full, because half of our customers read them the other way round.",
    "The warehouse in Leith counts its stock on Mondays and answers no questions until ten.",
    "Damaged goods are photographed before they are sent back.",
    "Never promise a courier that has not confirmed the pickup.",
)


def make_text(start: int, count: int) -> str:
    """Return this many sentences, starting at another one for each `start`."""
    return " ".join([SENTENCES[(start + at) % len(SENTENCES)] for at in range(count)])


def memories(count: int) -> tuple[MemoryInput, ...]:
    return tuple(
        [MemoryInput(f"Fact {at}: {SENTENCES[at % 8]}", Origin("memory", f"m{at}", 1)) for at in range(count)]
    )


def skills(count: int) -> tuple[SkillInput, ...]:
    names = [f"{SKILLS[at % len(SKILLS)]}-{at}" for at in range(count)]
    return tuple(
        [
            SkillInput(
                name, SENTENCES[at % 8], f"/srv/skills/{name}/SKILL.md", origin=Origin("skill", name, 3)
            )
            for at, name in enumerate(names)
        ]
    )


def context_files(count: int) -> tuple[ContextFileInput, ...]:
    paths = [f"/srv/shop{''.join(FOLDERS[:depth])}/AGENTS.md" for depth in range(count)]
    texts = [f"# Rules\n\n{make_text(at, 9)}\n\n{make_text(at + 3, 9)}" for at in range(count)]
    return tuple(
        [
            ContextFileInput(path, text, Origin("context_file", path, 1))
            for path, text in zip(paths, texts, strict=True)
        ]
    )


def tool(
    name: str, parameter: str, result: str, description: str, *guidelines: str, use: str = "active"
) -> ToolInput:
    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return ToolInput(
        name,
        description,
        snippet=description,
        guidelines=guidelines,
        parameters=parameters,
        signature=f"{name}({parameter} :string) -> {result}",
        use="planning" if use == "planning" else "active",
        origin=Origin("tool", name, 2),
    )


SKILLS = ("refund", "invoice", "pickup", "stock-count", "complaint", "translation")
FOLDERS = ("/backend", "/orders", "/returns", "/tests")
TOOLS = (
    tool("read", "path", ":string", "Read file contents"),
    tool("write", "path", ":bool", "Create or overwrite files"),
    tool("bash", "command", ":string", "Execute bash commands", "Quote every path in a command"),
    tool("use_skill", "name", ":string", "Load the full instructions of a skill"),
    tool("memory_search", "query", "[{id :int, text :string}]", "Search what was learned earlier"),
    tool("memory_save", "text", ":bool", "Keep a fact for later sessions", "Save one fact at a time"),
    tool("find_order", "number", "{id :int, total :float}", "Find an order by its number"),
    tool("notify_user", "text", ":bool", "Send the user a message", "Notify only about what cannot wait"),
    tool("list_invoices", "customer", "[:map]", "List the invoices of a customer", use="planning"),
    tool("book_courier", "address", ":map", "Book a courier for a pickup", use="planning"),
)

DATA = Data(
    {
        "customer": {"id": 4711, "name": "Ines Castellano", "city": "Porto"},
        "orders": [{"id": at, "total": at * 12.5, "open": at % 2 == 0} for at in range(1, 9)],
        "currency": "EUR",
        "refund_limit": 50,
        "couriers": ["Tamega Express", "Norte Cargo"],
        "_token": "kept from every prompt",
    },
    "{customer :map, orders [:map], currency :string, refund_limit :int, couriers [:string], _token :string}",
    Origin("data", "d1", 1),
)

INPUTS = PromptInputs(
    agent="front-desk",
    identity=IdentityInput(
        "Juno", "☕", "night owl", "calm and exact", make_text(0, 3), Origin("identity", "i1", 4)
    ),
    soul=Text(make_text(1, 8), Origin("soul", "s1", 2)),
    user=UserProfileInput("Ines", "Europe/Lisbon", "Porto", make_text(4, 2), Origin("user_profile", "u1", 1)),
    instructions=Text(make_text(2, 6), Origin("instructions", "n1", 7)),
    responsibilities=tuple(
        [
            ResponsibilityInput(f"Duty {at}", SENTENCES[at % 8], Origin("responsibility", f"r{at}", 1))
            for at in range(12)
        ]
    ),
    memories=memories(20),
    context_files=context_files(5),
    skills=skills(30),
    tools=TOOLS,
    working_directory="/srv/shop/backend",
    directories=("/srv/archive", "/srv/labels"),
    capabilities=("files", "persistence"),
    channel=ChannelInput("whatsapp", make_text(5, 2), Origin("channel", "whatsapp", 1)),
    data=DATA,
    mission=Text(
        "Settle the open orders of {{customer.name}} in {{currency}}, then report to the desk.",
        Origin("mission", "t1", 1),
    ),
)

# The slots that a bot usually sends: time, host and session.
CALL = Slots(
    now=datetime(2026, 3, 7, 8, 55, 5, tzinfo=UTC),
    timezone="Europe/Lisbon",
    host=MappingProxyType({"host": "desk-2", "os": "linux", "shell": "bash", "model": "large"}),
    sandbox=MappingProxyType({"enabled": True, "mode": "all", "network": False}),
    session=Session("c-17", "/srv/plans/c-17.md"),
)

# The same with every other slot filled too.
FULLEST_CALL = replace(
    CALL,
    task=TaskInput(
        12, "Clear the returns", SENTENCES[6], "open", (StepInput("Count", True), StepInput("Refund"))
    ),
    is_background=True,
    previous_error=PreviousError("timeout", "The tool took too long."),
    append="Answer in one sentence.",
)
