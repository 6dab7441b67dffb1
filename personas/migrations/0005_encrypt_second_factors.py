"""Encrypt the seeds of second factors. Backwards, they are stored in clear again."""

from typing import Any

from django.db import migrations
from django.db.models import Q

from core.db.online_migrations import RunInBatches
from personas.accounts.encryption import ENCRYPTED_PREFIX, decrypt_secret, encrypt_secret, is_encrypted
from personas.accounts.second_factors import transform_secrets

ENCRYPTED = Q(data__secret__startswith=ENCRYPTED_PREFIX) | Q(data__seed__startswith=ENCRYPTED_PREFIX)
IN_CLEAR = (Q(data__secret__isnull=False) & ~Q(data__secret__startswith=ENCRYPTED_PREFIX)) | (
    Q(data__seed__isnull=False) & ~Q(data__seed__startswith=ENCRYPTED_PREFIX)
)


def list_factors(apps: Any, condition: Q, size: int) -> list[int]:
    rows = apps.get_model("mfa", "Authenticator").objects.filter(condition).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:size])


def list_clear_factors(apps: Any, size: int) -> list[int]:
    return list_factors(apps, IN_CLEAR, size)


def list_encrypted_factors(apps: Any, size: int) -> list[int]:
    return list_factors(apps, ENCRYPTED, size)


def encrypt_factors(apps: Any, keys: list[int]) -> None:
    for factor in apps.get_model("mfa", "Authenticator").objects.select_for_update().filter(pk__in=keys):
        factor.data = transform_secrets(
            factor.data, lambda text: text if is_encrypted(text) else encrypt_secret(text)
        )
        factor.save(update_fields=["data"])


def decrypt_factors(apps: Any, keys: list[int]) -> None:
    for factor in apps.get_model("mfa", "Authenticator").objects.select_for_update().filter(pk__in=keys):
        factor.data = transform_secrets(factor.data, decrypt_secret)
        factor.save(update_fields=["data"])


class Migration(migrations.Migration):
    # RunInBatches commits after each batch.
    atomic = False

    replaces = [
        ("personas", "0015_encrypt_second_factors"),
    ]

    dependencies = [
        ("personas", "0004_row_level_security"),
        ("mfa", "0003_authenticator_type_uniq"),
    ]

    operations = [
        RunInBatches(list_clear_factors, encrypt_factors, reverse=(list_encrypted_factors, decrypt_factors))
    ]
