"""API keys: format, scopes, creation, rotation and revocation."""

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.utils import timezone

from personas.api_keys import format as api_keys_format
from personas.api_keys.format import (
    ADMIN,
    BASE62,
    KEY_PREFIXES,
    compute_checksum,
    generate_key_secret,
    get_key_kind,
    is_well_formed_key,
    key_digest,
)
from personas.api_keys.scopes import BadScopes, find_missing_scope, normalise_scopes
from personas.api_keys.services import (
    KeyExpired,
    KeyRevoked,
    create_key,
    revoke_key,
    rotate_key,
    save_last_used,
)
from personas.errors import InvalidInput
from personas.models import ApiKey, AuditEvent
from skills.scanning import compute_key_checksum, scan_text
from tests.factories import make_agent, make_channel

KINDS = list(KEY_PREFIXES)

# --- format --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_its_kind_thirty_characters_and_six_of_checksum(kind):
    secret = generate_key_secret(kind)
    assert secret.startswith(f"drm_{kind}_")
    body = secret.removeprefix(f"drm_{kind}_")
    assert len(body) == 36
    assert set(body) <= set(BASE62)
    assert is_well_formed_key(secret)
    assert get_key_kind(secret) == kind
    assert get_key_kind(f"x{secret}") == get_key_kind("drm_root_" + body) == ""


def test_generated_keys_are_unique():
    assert len({generate_key_secret() for _ in range(2_000)}) == 2_000


def test_the_scanner_knows_our_keys_by_the_same_checksum():
    bodies = [generate_key_secret().rpartition("_")[2][:30] for _ in range(500)]
    assert all(compute_checksum(body) == compute_key_checksum(body) for body in bodies)
    for kind in KINDS:
        assert [finding.rule for finding in scan_text(f"Use {generate_key_secret(kind)} for it.")] == [
            "secret-own-key"
        ]


def test_every_single_mistyped_character_is_noticed():
    secret = generate_key_secret(ADMIN)
    for place in range(len(KEY_PREFIXES[ADMIN]), len(secret)):
        for letter in BASE62:
            if letter != secret[place]:
                assert not is_well_formed_key(secret[:place] + letter + secret[place + 1 :])


@pytest.mark.parametrize(
    "secret",
    ["", "drm_bot_", "drm_admin_" + "a" * 36, "drm_bot_" + "a" * 36, " ", "x" * 44, "drm_bot_" + "é" * 36],
)
def test_a_malformed_key_is_detected_without_a_query(secret):
    assert not is_well_formed_key(secret)
    assert not is_well_formed_key(generate_key_secret() + "0")
    assert not is_well_formed_key(generate_key_secret()[:-1])
    assert is_well_formed_key(generate_key_secret())


@pytest.mark.planted
def test_a_checksum_that_differs_from_the_scanners_is_detected(monkeypatch):
    monkeypatch.setattr(api_keys_format, "compute_checksum", lambda body: compute_key_checksum(body)[::-1])
    with pytest.raises(AssertionError):
        test_the_scanner_knows_our_keys_by_the_same_checksum()


@pytest.mark.planted
def test_a_checksum_that_ignores_the_key_is_detected(monkeypatch):
    monkeypatch.setattr(api_keys_format, "compute_checksum", lambda body: "0" * 6)
    with pytest.raises(AssertionError):
        test_every_single_mistyped_character_is_noticed()


# --- scopes --------------------------------------------------------------------------------------------


def test_an_absent_list_allows_all_and_a_list_only_what_it_names():
    scopes = {"verbs": ["fetch"], "agents": ["pilot"]}
    assert not find_missing_scope(scopes, "fetch", "pilot", "deck", "production")
    assert find_missing_scope(scopes, "render", "pilot", "deck", "production")
    assert find_missing_scope(scopes, "fetch", "cook", "deck", "production")
    assert not find_missing_scope({}, "write", "anyone", "anywhere", "anything")


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ([], "object whose values are lists"),
        ({"colour": ["red"]}, "“colour” is not"),
        ({"agents": []}, "omit it"),
        ({"agents": "pilot"}, "a list of strings"),
        ({"agents": [7]}, "a list of strings"),
        ({"agents": [""]}, "a list of strings"),
        ({"verbs": ["fly"]}, "“fly” is not a valid permission"),
        ({"labels": [f"l{n}" for n in range(201)]}, "more than 200"),
    ],
)
def test_invalid_scopes_are_rejected(scopes, message):
    with pytest.raises(BadScopes, match=message):
        normalise_scopes(scopes)


# --- verbs ---------------------------------------------------------------------------------------------


@pytest.fixture
def key(workspace, by_alice):
    return create_key(workspace, "Reception", {}, by=by_alice)


@pytest.mark.django_db
def test_the_secret_is_nowhere_in_the_database(key, workspace):
    created, secret = key
    assert created.digest == key_digest(secret)
    assert created.prefix == secret[:14]
    for model in apps.get_models():
        for row in model._base_manager.values():
            assert secret not in str(row)
            assert secret[14:] not in json.dumps(row, default=str)


@pytest.mark.django_db
def test_a_key_lasts_half_a_year_by_default_and_a_year_at_most(workspace, by_alice):
    now = timezone.now()
    usual, _ = create_key(workspace, "Usual", {}, by=by_alice)
    assert timedelta(days=179) < usual.expires_at - now <= timedelta(days=181)
    create_key(workspace, "Year", {}, now + timedelta(days=365), by=by_alice)
    for days in (366, 0, -1):
        with pytest.raises(InvalidInput) as caught:
            create_key(workspace, f"In {days}", {}, now + timedelta(days=days), by=by_alice)
        assert "expires_at" in caught.value.errors


@pytest.mark.django_db
def test_a_key_needs_a_name_of_its_own(key, workspace, by_alice):
    for name in ("Reception", "", "two\nlines", "n" * 81):
        with pytest.raises(InvalidInput) as caught:
            create_key(workspace, name, {}, by=by_alice)
        assert "name" in caught.value.errors


@pytest.mark.django_db
def test_scopes_name_agents_and_channels_of_this_workspace(workspace, elsewhere, by_alice):
    make_agent(workspace, "cook")
    make_agent(elsewhere, "spy")
    make_channel(workspace, "deck")
    scopes = {
        "agents": ["cook", "cook"],
        "channels": ["deck"],
        "labels": ["canary"],
        "verbs": ["render", "fetch"],
    }
    key, _ = create_key(workspace, "Narrow", scopes, by=by_alice)
    assert key.scopes == {
        "verbs": ["fetch", "render"],
        "agents": ["cook"],
        "channels": ["deck"],
        "labels": ["canary"],
    }
    with pytest.raises(InvalidInput, match="The agent “spy” does not exist"):
        create_key(workspace, "Wide", {"agents": ["spy"]}, by=by_alice)
    with pytest.raises(InvalidInput, match="The channel “moon” does not exist"):
        create_key(workspace, "Wide", {"channels": ["moon"]}, by=by_alice)


@pytest.mark.django_db
def test_a_key_is_revoked_once_and_stays_so(key, workspace, by_alice):
    first = revoke_key(key[0], by=by_alice).revoked_at
    assert first is not None
    assert revoke_key(key[0], by=by_alice).revoked_at == first
    assert events(workspace) == ["created Reception", "revoked Reception"]


@pytest.mark.django_db
def test_after_a_rotation_both_keys_are_valid_until_the_given_time(key, workspace, by_alice):
    old, secret = key
    ends = timezone.now() + timedelta(days=2)
    new, other = rotate_key(old, ends_at=ends, by=by_alice)
    old.refresh_from_db()
    assert (old.expires_at, old.revoked_at, new.name, new.scopes) == (
        ends,
        None,
        "Reception 2",
        old.scopes,
    )
    assert other != secret
    assert rotate_key(new, ends_at=ends, by=by_alice)[0].name == "Reception 3"
    assert events(workspace) == [
        "created Reception",
        "rotated Reception",
        "created Reception 2",
        "rotated Reception 2",
        "created Reception 3",
    ]


@pytest.mark.django_db
def test_the_old_key_stays_valid_for_seven_days_at_most(key, by_alice):
    old, _ = key
    with pytest.raises(InvalidInput) as caught:
        rotate_key(old, ends_at=timezone.now() + timedelta(days=7, minutes=1), by=by_alice)
    assert "at most 7 days" in caught.value.errors["overlap_hours"][0]
    rotate_key(old, ends_at=timezone.now() + timedelta(days=7), by=by_alice)


@pytest.mark.django_db
def test_a_rotated_key_refers_to_the_first_of_its_chain(key, by_alice):
    old, _ = key
    second, _ = rotate_key(old, ends_at=timezone.now() + timedelta(days=1), by=by_alice)
    third, _ = rotate_key(second, ends_at=timezone.now() + timedelta(days=1), by=by_alice)
    assert {old.origin_key_id, second.origin_key_id, third.origin_key_id} == {old.pk}


@pytest.mark.django_db
def test_a_rotation_never_prolongs_the_old_key(key, by_alice):
    old, _ = key
    end = old.expires_at = timezone.now() + timedelta(days=5)
    old.save()
    rotate_key(old, ends_at=end + timedelta(days=100), by=by_alice)
    old.refresh_from_db()
    assert old.expires_at == end
    rotate_key(old, ends_at=timezone.now() - timedelta(days=1), by=by_alice)
    old.refresh_from_db()
    assert old.expires_at <= timezone.now()


@pytest.mark.django_db
def test_a_key_that_has_ended_is_not_rotated(key, workspace, by_alice):
    key[0].expires_at = timezone.now()
    key[0].save()
    with pytest.raises(KeyExpired):
        rotate_key(key[0], ends_at=timezone.now(), by=by_alice)
    revoke_key(key[0], by=by_alice)
    with pytest.raises(KeyRevoked):
        rotate_key(key[0], ends_at=timezone.now(), by=by_alice)
    assert ApiKey.objects.in_workspace(workspace).count() == 1


@pytest.mark.django_db
def test_the_last_use_is_written_once_a_minute(key, workspace):
    row, now = key[0], timezone.now()
    for seconds, expected in ((0, 0), (59, 0), (61, 61), (30, 61)):
        save_last_used(workspace, {row.pk: now + timedelta(seconds=seconds)})
        row.refresh_from_db()
        assert row.last_used_at == now + timedelta(seconds=expected)


@pytest.mark.django_db
def test_keys_of_other_workspaces_are_not_updated(key, elsewhere):
    save_last_used(elsewhere, {key[0].pk: timezone.now()})
    key[0].refresh_from_db()
    assert key[0].last_used_at is None


def events(workspace) -> list[str]:
    rows = AuditEvent.objects.in_workspace(workspace).filter(kind="key").order_by("pk")
    return [f"{row.verb} {row.object_label}" for row in rows]
