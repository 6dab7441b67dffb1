"""Naive fetch view for comparison: ordinary DRF code behind the product's middleware."""

from hashlib import sha256
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.decorators import method_decorator
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from personas.api_keys.format import key_digest
from personas.models import ApiKey
from prompts.assembly.slots import Slots, fill_segments
from prompts.models import LedgerEntry, PromptLabel, PromptVersion
from prompts.proof.hashed_rows import LedgerRow
from prompts.proof_rows import build_ledger_row
from prompts.publishing.versions.selectors import get_segments
from prompts.serving.slot_values import slots_json


class KeyAuthentication(BaseAuthentication):
    """Authentication that loads the API key as a model."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey]:
        secret = request.headers.get("Authorization", "").removeprefix("Bearer ")
        keys = ApiKey.unscoped.select_related("workspace", "created_by")
        key = keys.filter(digest=key_digest(secret), revoked_at=None, expires_at__gt=timezone.now()).first()
        if key is None:
            raise AuthenticationFailed
        return KeyHolder(), key


class KeyHolder:
    """The authenticated user that DRF requires."""

    is_authenticated = True


class VersionSerializer(serializers.ModelSerializer[PromptVersion]):
    """Serializer of a version with its text, agent and channel."""

    agent = serializers.CharField(source="prompt.agent.slug")
    channel = serializers.CharField(source="prompt.channel.slug")
    text = serializers.CharField()
    ledger_id = serializers.IntegerField()

    class Meta:
        model = PromptVersion
        fields = (
            *("agent", "channel", "number", "digest", "layout", "tokens", "sizes", "created_at"),
            *("segments", "text", "ledger_id"),
        )


@method_decorator(login_not_required, name="dispatch")
class NaivePromptViewSet(GenericViewSet[PromptVersion]):
    """Load key, label, version and text from the database each time; write the ledger row with the ORM."""

    authentication_classes = (KeyAuthentication,)
    permission_classes = (IsAuthenticated,)
    serializer_class = VersionSerializer

    def retrieve(self, request: Request, agent: str, channel: str) -> Response:
        key: Any = request.auth
        label = get_object_or_404(
            PromptLabel.objects.in_workspace(key.workspace).select_related(
                "version__prompt__agent", "version__prompt__channel"
            ),
            prompt__agent__slug=agent,
            prompt__channel__slug=channel,
            name="production",
        )
        version = label.version
        slots = Slots(now=timezone.now())
        text = "".join([segment.text for segment in fill_segments(get_segments(version), slots)])
        entry = write_ledger_entry(key, version, slots, text)
        version.text, version.ledger_id = text, entry.pk  # type: ignore[attr-defined]  # for the serializer
        return Response(self.get_serializer(version).data, headers={"ETag": f'W/"{version.digest}"'})


def write_ledger_entry(key: ApiKey, version: PromptVersion, slots: Slots, text: str) -> LedgerEntry:
    data = text.encode()
    entry = LedgerEntry(
        workspace=key.workspace,
        key=key,
        reader_label=key.name,
        prompt=version.prompt,
        label="production",
        version=version,
        slots=slots_json(slots),
        served_digest=sha256(data).hexdigest(),
        size=len(data),
        status=200,
        request_id="bench",
        at=timezone.now(),
    )
    row: LedgerRow = build_ledger_row(entry)
    entry.seal = row.seal()
    entry.save()
    return entry
