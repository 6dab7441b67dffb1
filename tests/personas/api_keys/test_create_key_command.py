"""manage.py create_key: the secret alone on standard output, and an event in the audit log."""

import pytest
from django.core.management import CommandError, call_command

from personas.models import ApiKey, AuditEvent
from tests.api_client import Api
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


def run(capsys, *arguments):
    call_command("create_key", *arguments)
    return capsys.readouterr()


def test_the_key_works_and_may_fetch_and_render(client, workspace, capsys):
    output = run(capsys, "--workspace", workspace.slug)
    [secret] = output.out.splitlines()
    me = Api(secret, client).get("me").json()
    assert (me["key"]["kind"], me["verbs"]) == ("bot", ["fetch", "render"])
    assert secret not in output.err
    event = AuditEvent.objects.in_workspace(workspace).get(verb="created", kind="key")
    assert event.actor_label == "operator (manage.py create_key)"


def test_scopes_are_options(client, workspace, capsys):
    make_agent(workspace, "pilot")
    arguments = ["--name", "Desk", "--verb", "read", "--verb", "fetch", "--agent", "pilot", "--days", "3"]
    run(capsys, "--workspace", workspace.slug, *arguments)
    key = ApiKey.objects.in_workspace(workspace).get(name="Desk")
    assert key.scopes == {"verbs": ["fetch", "read"], "agents": ["pilot"]}
    assert (key.expires_at - key.created_at).days in (2, 3)


def test_an_admin_key_acts_for_a_member(client, workspace, alice, capsys):
    output = run(capsys, "--workspace", workspace.slug, "--verb", "manage", "--admin", alice.email)
    assert Api(output.out.strip(), client).get("keys").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workspace", "nowhere"], "Workspace “nowhere” not found."),
        (["--agent", "nobody"], "The agent “nobody” does not exist"),
        (["--verb", "manage"], "Use an admin key"),
        (["--admin", "mallory@example.com"], "is not a member of"),
        (["--days", "900"], "365 days"),
    ],
)
def test_a_mistake_is_named_and_creates_nothing(workspace, capsys, arguments, message):
    with pytest.raises(CommandError, match=message):
        run(capsys, "--workspace", workspace.slug, *arguments)
    assert not ApiKey.objects.in_workspace(workspace).exists()
