"""Parsing and rendering IDENTITY.md, USER.md and SOUL.md round-trips without loss."""

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from core.text.front_matter import FrontMatterError, TextProblem
from personas.persona_files import format as persona_format
from personas.persona_files.bullets import BulletValues
from personas.persona_files.format import (
    IDENTITY_KEYS,
    USER_KEYS,
    IdentityFile,
    UserFile,
    find_extra_problems,
    parse_identity,
    parse_soul,
    parse_user,
    render_identity,
    render_soul,
    render_user,
)

AWKWARD = [
    "no", "Yes", "on", "y", "null", "~", "true", "1.10", "007", "0x1F", "1e3", "12:30:45", "2024-01-01",
    ".inf", "<<", "=", "a: b", "a:", "a:b", ": a", "a #b", "a#b", "#a", "'a'", '"a"', 'say "hi"', "it's",
    "\\n", "a\\", "a\nb", "a\n\n  b", "\na", "a\n---\nb", "- a", "-", "? a", "[a", "{a", "a]", "a, b", "&a",
    "*a", "!a", "|", ">", "%a", "@a", "`a", "---", "...", " a ", "\ta", "a\t", "\u00a0a", "\u3000",
    "\u2028a\u2029", "a\ufeff", "\ufeff", "\u202eabc", "\u200fabc", "é", "e\u0301", "\U0010ffff",
    "🦊", "👩‍💻", "🏳️‍🌈", "مرحبا", "שלום: עולם", "x" * 2_000,
]  # fmt: skip
EXTRAS = [
    "",
    "pronouns: she/her\n",
    "# why\npronouns:   'she'   # beside\n\n\n# tail\n",
    "# lone\n\nz: |+\n  text\n\n\na: [1,\n 2]\n",
    "  # indented\nb:\n- x\n-  y\n",
    '"odd key": {a: b}\n# no: key\n',
    "Name: not ours\nNULL: ~\nno: yes\n",
    "# only a comment\n",
    "c: >-\n    folded\n    text",
]

WRITABLE = st.characters(
    exclude_categories=["Cc", "Cs"], include_characters="\t\n", exclude_characters="\ufffe\uffff"
)
VALUE = st.one_of(st.sampled_from(AWKWARD), st.text(WRITABLE, max_size=40))
BODY = st.one_of(
    st.sampled_from(["", "---", "---\nname: x\n---\n", "\n", "\n\na\n\n", "\ufeffa", "a\r\nb"]),
    st.text(WRITABLE),
)
IDENTITIES = st.builds(
    IdentityFile,
    name=VALUE,
    emoji=VALUE,
    creature=VALUE,
    vibe=VALUE,
    text=BODY,
    extra=st.sampled_from(EXTRAS),
)
USERS = st.builds(
    UserFile, name=VALUE, timezone=VALUE, location=VALUE, notes=BODY, extra=st.sampled_from(EXTRAS)
)


def list_problems(call, value) -> tuple[TextProblem, ...]:
    with pytest.raises(FrontMatterError) as caught:
        call(value)
    return caught.value.problems


def test_an_identity_reads_as_in_the_seed():
    text = "---\nname: Rex\nemoji: 🦊\ncreature: fox\nvibe: dry\n---\n\nFree text.\n"
    assert parse_identity(text) == IdentityFile("Rex", "🦊", "fox", "dry", "Free text.")


def test_a_user_reads_as_in_the_seed():
    text = "---\nname: Alice\ntimezone: Europe/Paris\nlocation: 48.85, 2.35\n---\n\nLikes tea.\n"
    assert parse_user(text) == UserFile("Alice", "Europe/Paris", "48.85, 2.35", "Likes tea.")


def test_known_keys_are_written_in_order_then_extra_then_body():
    identity = IdentityFile(vibe="dry", name="Ada", emoji="🦊", text="Hello", extra="team: blue")
    assert render_identity(identity) == "---\nname: Ada\nemoji: 🦊\nvibe: dry\nteam: blue\n---\n\nHello\n"


def test_an_empty_file_is_empty_text():
    assert render_identity(IdentityFile()) == ""
    assert parse_identity("") == parse_identity("\n") == parse_identity("---\n---\n") == IdentityFile()


@pytest.mark.parametrize("value", AWKWARD)
def test_an_awkward_value_round_trips_and_other_yaml_parsers_read_the_same_text(value):
    text = render_identity(IdentityFile(name=value))
    assert parse_identity(text).name == value
    assert yaml.safe_load(text.split("---\n")[1]) == {"name": value}


@pytest.mark.parametrize("extra", EXTRAS)
def test_unknown_keys_survive_byte_for_byte(extra):
    raw = f"{extra.removesuffix(chr(10))}\n" if extra else ""
    identity = parse_identity(f"---\nname: Ada\n{raw}---\n")
    assert identity.extra == raw
    assert raw in render_identity(identity)


@settings(deadline=None)
@given(IDENTITIES)
@example(IdentityFile(text="---", extra=""))
@example(IdentityFile(vibe="a\n", extra="\n\nfoo: 1"))
def test_every_identity_round_trips(identity):
    assert parse_identity(render_identity(identity)) == identity


@pytest.mark.slow
@settings(deadline=None)
@given(USERS)
def test_every_user_round_trips(user):
    assert parse_user(render_user(user)) == user


PIECES = st.lists(
    st.sampled_from(
        ["name: Ada", "# about name", "emoji: 🦊 # fox", "vibe: |", "  calm", "", "creature: >+", "# note",
         "  # indented", "bio: |+", "bio2: >", "  text", "team:", "- a", "  - b", "x: 'a", "  b'", "  ",
         "y: {a: [b]}", " # odd"]
    ),
    max_size=14,
)  # fmt: skip


def unknown_values(text: str) -> dict[str, object]:
    # PyYAML as an independent parser: our own loader would share our mistakes.
    values = yaml.safe_load(text) or {}
    return {key: value for key, value in values.items() if key not in IDENTITY_KEYS}


@pytest.mark.slow
@settings(deadline=None)
@given(PIECES, st.sampled_from(["", "\nBody\n", "Body", "\n\n---\n"]))
@example(["bio: |+", "  text", "name: Ada", "", "# note"], "")
@example(["bio: |", "  text", "name: Ada", "  # indented", "", "team:"], "")
def test_rendering_what_was_read_is_stable_and_unknown_values_keep_their_meaning(pieces, body):
    head = "".join(f"{piece}\n" for piece in pieces)
    try:
        identity = parse_identity(f"---\n{head}---\n{body}")
    except FrontMatterError:
        assume(False)
    assert unknown_values(identity.extra) == unknown_values(head)
    assert find_extra_problems(identity.extra, IDENTITY_KEYS) == ()
    once = render_identity(identity)
    assert parse_identity(once) == identity
    assert render_identity(parse_identity(once)) == once


def test_comments_stay_with_unknown_keys_and_lone_comments_are_kept():
    about_name, team = "# about name\nname: Ada # beside\n", "# about team\nteam: blue\n\n# lone too\n\n"
    identity = parse_identity(f"---\n# lone\n\n{about_name}{team}vibe: dry\n# end\n---\n")
    assert identity.extra == f"# lone\n\n{team}# end\n"


def test_windows_files_and_form_posts_become_plain_newlines():
    assert parse_user("\ufeff---\r\nname: Alice\r\nteam: x\r\n---\r\n\r\nOne\r\nTwo\r\n") == UserFile(
        "Alice", notes="One\nTwo", extra="team: x\n"
    )
    assert UserFile(notes="One\r\nTwo", extra="team: x\r\n") == UserFile(notes="One\nTwo", extra="team: x\n")


def test_a_known_key_of_the_wrong_shape_is_named_with_its_line():
    assert list_problems(parse_identity, "---\nname: [Ada]\nteam: [x]\nvibe:\n  a: b\n---\n") == (
        TextProblem("name", 2, '"name" must be text, not a list.'),
        TextProblem("vibe", 4, '"vibe" must be text, not a group of keys.'),
    )


def test_problems_of_front_matter_and_body_are_reported_together_with_line_numbers():
    problems = list_problems(parse_user, "---\nname: Ada\nname: Bob\n---\n\nfine\nbad \x07\n")
    assert [(problem.field, problem.line) for problem in problems] == [("name", 3), ("notes", 7)]


def test_a_list_where_text_belongs_is_fine_under_an_unknown_key():
    assert parse_user("---\nemoji: [a]\n---\n").extra == "emoji: [a]\n"


@pytest.mark.parametrize(
    ("identity", "field", "message"),
    [
        (IdentityFile(name="a\0b"), "name", "U+0000"),
        (IdentityFile(vibe="\ud83d"), "vibe", "U+D83D"),
        (IdentityFile(text="a\x1bb"), "text", "U+001B"),
        (IdentityFile(vibe="x" * 17_000), "", "16 KiB"),
        (IdentityFile(extra="name: Bob"), "name", "has its own field"),
        (IdentityFile(name="Ada", extra="{}"), "", "braces"),
        (IdentityFile(extra="a: *b"), "", "aliases"),
    ],
)
def test_text_that_could_not_be_parsed_again_is_not_rendered(identity, field, message):
    problem = list_problems(render_identity, identity)[0]
    assert problem.field == field
    assert message in problem.message


@pytest.mark.parametrize("extra", EXTRAS)
def test_valid_extra_lines_have_no_problems(extra):
    assert find_extra_problems(extra) == find_extra_problems(extra.replace("\n", "\r\n")) == ()


@pytest.mark.parametrize(
    ("extra", "line", "message"),
    [
        ("team: x\n\nname: Ada", 3, '"name" has its own field'),
        ("'vibe': dry", 1, '"vibe" has its own field'),
        ("a: 1\na: 2", 2, "appears twice"),
        ("a: &b c", 1, "Anchors"),
        ("a: !!python/name:os.system x", 1, "Tags"),
        ("just words", 1, "key: value"),
        ("- a\n- b", 1, "not a list"),
        ("{a: b}", 1, "without braces"),
        ("{}", 1, "empty braces"),
        ("  a: b", 1, "start of the line"),
        ("a: 1\n---\nInjected body", 2, "---"),
        ("a: 1\n---", 2, "---"),
        ("a: 1\n...", 2, "---"),
        ("a: \x00", 1, "U+0000"),
        ("\t", 1, "Tabs"),
        ("\u3000", 1, "key: value"),
        ("a: " + "x" * 17_000, 1, "16 KiB"),
    ],
)
def test_invalid_extra_lines_have_a_reason(extra, line, message):
    problem = find_extra_problems(extra)[0]
    assert message in problem.message
    assert problem.line == line


def test_each_file_knows_its_own_keys():
    assert find_extra_problems("timezone: UTC", IDENTITY_KEYS) == ()
    assert find_extra_problems("emoji: x", USER_KEYS) == ()
    assert find_extra_problems("timezone: UTC")[0].field == "timezone"


@settings(deadline=None)
@given(st.one_of(st.text(st.sampled_from("ab: \n#-'"), max_size=20), PIECES.map("\n".join)))
def test_extra_lines_without_problems_round_trip(extra):
    if find_extra_problems(extra):
        return
    user = UserFile(name="Alice", notes="---", extra=extra)
    assert parse_user(render_user(user)) == user


def test_a_soul_is_kept_as_it_is():
    soul = "\n---\nname: x\n---\n\n# Who you are\n\ttabs, trailing blanks  \n\n\n"
    assert parse_soul(soul) == render_soul(soul) == soul


def test_a_soul_from_windows_loses_only_mark_and_carriage_returns():
    assert parse_soul("\ufeff# Soul\r\n\r\nKind.\r\n") == "# Soul\n\nKind.\n"


def test_a_soul_with_control_characters_is_refused_with_its_line():
    assert list_problems(parse_soul, "ok\nbad\0\n") == (
        TextProblem("text", 2, "The character U+0000 is not allowed."),
    )


@settings(deadline=None)
@given(st.text(WRITABLE))
def test_every_soul_is_stable(text):
    soul = parse_soul(text)
    assert parse_soul(render_soul(soul)) == soul


# --- list entries, as in OpenClaw's files --------------------------------------------------------------

CLAWD = (
    "# IDENTITY.md\n\n_Fill this in._\n\n- **Name:** Clawd\n- **Creature:** space lobster\n"
    "* **Vibe**: dry, warm\n"
    "- **Emoji:** 🤖 (classic, dependable)\n- **Avatar:** a.png\n\n## More\n\n- **Name:** Other\n"
)


def test_list_entries_of_an_identity_are_its_fields():
    identity = parse_identity(CLAWD)
    assert (identity.name, identity.creature, identity.vibe) == ("Clawd", "space lobster", "dry, warm")
    assert identity.emoji == "🤖"
    # Nothing is lost: what is not a value as a whole stays in the text.
    assert identity.text == (
        "# IDENTITY.md\n\n_Fill this in._\n\n- **Emoji:** 🤖 (classic, dependable)\n- **Avatar:** a.png\n\n"
        "## More\n\n- **Name:** Other"
    )
    assert parse_identity(render_identity(identity)) == identity


@pytest.mark.parametrize(
    "value",
    [
        "",
        "_(pick something you like)_",
        "(pick something)",
        "_Fill this in_",
        "[your name]",
        "<name>",
        "—",
        "x" * 81,
    ],
)
def test_placeholders_are_not_values(value):
    text = f"- **Name:** {value}\n- **Creature:**\n  _(AI? robot?)_\n"
    identity = parse_identity(text)
    assert (identity.name, identity.creature) == ("", "")
    assert identity.text == text.removesuffix("\n")
    assert parse_identity(render_identity(identity)) == identity


def test_list_entries_of_a_user_are_its_fields():
    user = parse_user(
        "# USER.md\n\n- **Name:** Ada Byron\n- **What to call them:** Ada\n"
        "- **Timezone:** Europe/London (GMT)\n"
        "- **Location:** London\n- **Notes:**\n  - Likes tea\n"
    )
    assert (user.name, user.timezone, user.location) == ("Ada Byron", "Europe/London", "London")
    assert user.notes == (
        "# USER.md\n\n- **What to call them:** Ada\n- **Timezone:** Europe/London (GMT)\n"
        "- **Notes:**\n  - Likes tea"
    )
    assert parse_user(render_user(user)) == user
    for zone in ("India (IST)", "../../etc/passwd", "localtime"):
        assert parse_user(f"- **Timezone:** {zone}\n").timezone == ""


def test_the_front_matter_precedes_list_entries():
    identity = parse_identity("---\nname: Fox\nvibe: ''\n---\n\n- **Name:** Clawd\n- **Vibe:** dry\n")
    assert (identity.name, identity.vibe) == ("Fox", "")
    assert identity.text == "- **Name:** Clawd\n- **Vibe:** dry"


def test_a_text_that_looks_like_a_value_stays_text_after_export_and_import():
    identity = IdentityFile(text="- **Name:** Clawd")
    assert parse_identity(render_identity(identity)) == identity


@pytest.mark.planted
def test_an_export_that_turns_text_into_a_value_is_detected(monkeypatch):
    monkeypatch.setattr(persona_format, "read_bullet_values", lambda body, keys: BulletValues({}, body))
    rendered = render_identity(IdentityFile(text="- **Name:** Clawd"))
    monkeypatch.undo()
    assert parse_identity(rendered).name == "Clawd"
