"""What the fetch is held against: the ordinary way to write one with DRF, behind the product's middleware."""

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
from prompts.hashed_rows import build_ledger_row
from prompts.models import LedgerEntry, PromptLabel, PromptVersion
from prompts.proof.hashed_rows import LedgerRow
from prompts.serving import slots_json
from prompts.versions.selectors import get_segments


class ByKey(BaseAuthentication):
    """The key as a model."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey]:
        secret = request.headers.get("Authorization", "").removeprefix("Bearer ")
        keys = ApiKey.unscoped.select_related("workspace", "created_by")
        key = keys.filter(digest=key_digest(secret), revoked_at=None, expires_at__gt=timezone.now()).first()
        if key is None:
            raise AuthenticationFailed
        return Holder(), key


class Holder:
    """Whoever has the key."""

    is_authenticated = True


class VersionOut(serializers.ModelSerializer[PromptVersion]):
    """The version with its text and where it belongs."""

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
class Naive(GenericViewSet[PromptVersion]):
    """Key, label, version and words from the database each time; the ledger row by the ORM."""

    authentication_classes = (ByKey,)
    permission_classes = (IsAuthenticated,)
    serializer_class = VersionOut

    def retrieve(self, request: Request, agent: str) -> Response:
        key: Any = request.auth
        label = get_object_or_404(
            PromptLabel.objects.in_workspace(key.workspace).select_related(
                "version__prompt__agent", "version__prompt__channel"
            ),
            prompt__agent__slug=agent,
            prompt__channel__slug=request.query_params["channel"],
            name="production",
        )
        version = label.version
        slots = Slots(now=timezone.now())
        text = "".join([segment.text for segment in fill_segments(get_segments(version), slots)])
        entry = written(key, version, slots, text)
        version.text, version.ledger_id = text, entry.pk  # type: ignore[attr-defined]  # for the serializer
        return Response(self.get_serializer(version).data, headers={"ETag": f'W/"{version.digest}"'})


def written(key: ApiKey, version: PromptVersion, slots: Slots, text: str) -> LedgerEntry:
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
    sealed: LedgerRow = build_ledger_row(entry)
    entry.seal = sealed.seal()
    entry.save()
    return entry
