"""Second factors are encrypted at rest, keys can be rotated, and the doctor finds rows it cannot read."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core.management import CommandError, call_command
from django.db import connection

from personas.accounts.encryption import (
    UnreadableSecret,
    decrypt_secret,
    encrypt_secret,
    is_current,
    is_encrypted,
)
from personas.accounts.second_factors import UnreadableFactor
from project.doctor.checks import check_second_factors
from project.doctor.results import FindingState
from tests.personas.accounts.sign_in import get_totp_code

pytestmark = pytest.mark.django_db
OLD, NEW = "old-key-" * 5, "new-key-" * 5


def stored_data():
    with connection.cursor() as cursor:
        cursor.execute("SELECT CAST(data AS text) FROM mfa_authenticator")
        return " ".join(row[0] for row in cursor.fetchall())


def doctor_states():
    return [finding.state for finding in check_second_factors()]


@pytest.mark.usefixtures("stopped_clock")
def test_seeds_are_not_in_the_table_and_codes_still_work(bob):
    secret = generate_totp_secret()
    totp, codes = TOTP.activate(bob, secret), RecoveryCodes.activate(bob)
    seed = decrypt_secret(codes.instance.data["seed"])
    assert secret not in stored_data()
    assert seed not in stored_data()
    assert totp.validate_code(get_totp_code(secret))
    assert codes.validate_code(codes.get_unused_codes()[0])
    assert doctor_states() == [FindingState.OK]


def test_each_encryption_is_different_and_bound_to_its_key(settings):
    settings.DRAMATIS_SECRETS_KEYS = [OLD]
    one, other = encrypt_secret("seed"), encrypt_secret("seed")
    assert one != other
    assert is_encrypted(one)
    settings.DRAMATIS_SECRETS_KEYS = [NEW]
    with pytest.raises(UnreadableSecret):
        decrypt_secret(one)


def test_without_own_keys_the_secret_key_and_its_fallbacks_are_used(settings):
    settings.DRAMATIS_SECRETS_KEYS, settings.SECRET_KEY = [], OLD
    value = encrypt_secret("seed")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert decrypt_secret(value) == "seed"
    assert not is_current(value)
    # An installation that sets keys of its own later still reads what SECRET_KEY encrypted.
    settings.DRAMATIS_SECRETS_KEYS = ["own-key-" * 5]
    assert decrypt_secret(value) == "seed"


@pytest.mark.usefixtures("stopped_clock")
def test_a_rotation_is_reported_carried_out_and_leaves_the_old_key_unneeded(bob, settings, capsys):
    settings.DRAMATIS_SECRETS_KEYS = [OLD]
    secret = generate_totp_secret()
    TOTP.activate(bob, secret)
    RecoveryCodes.activate(bob)
    settings.DRAMATIS_SECRETS_KEYS = [NEW, OLD]
    assert doctor_states() == [FindingState.WARN]
    call_command("reencrypt_secrets")
    assert "2 changed" in capsys.readouterr().out
    settings.DRAMATIS_SECRETS_KEYS = [NEW]
    assert doctor_states() == [FindingState.OK]
    factor = Authenticator.objects.get(type="totp")
    assert TOTP(factor).validate_code(get_totp_code(secret))


def test_a_lost_key_is_a_failure_with_advice_and_no_server_error(bob, settings):
    settings.DRAMATIS_SECRETS_KEYS = [OLD]
    totp = TOTP.activate(bob, generate_totp_secret())
    settings.DRAMATIS_SECRETS_KEYS = [NEW]
    [finding] = check_second_factors()
    assert finding.state == FindingState.FAIL
    assert "DRAMATIS_SECRETS_KEYS" in finding.advice
    with pytest.raises(CommandError, match="1 secrets cannot be decrypted"):
        call_command("reencrypt_secrets")
    with pytest.raises(UnreadableFactor):
        totp.validate_code("000000")


def test_a_row_in_clear_is_a_failure_until_it_is_encrypted(bob):
    secret = generate_totp_secret()
    Authenticator.objects.create(user=bob, type="totp", data={"secret": secret})
    assert doctor_states() == [FindingState.FAIL]
    call_command("reencrypt_secrets")
    assert doctor_states() == [FindingState.OK]
    assert secret not in stored_data()
