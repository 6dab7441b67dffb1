"""Where production of many prompts would go back to, told before anything moves."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from personas.models import Workspace
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.versions.timeline import HEAVY


@dataclass(frozen=True)
class Return:
    """One prompt: where production is, and where it was before; or why it cannot go back."""

    prompt: AgentPrompt
    present: PromptVersion | None
    target: PromptVersion | None
    reason: str = ""

    @property
    def seen(self) -> str:
        """What somebody agrees to: whatever moves meanwhile makes it another word."""
        prompt, (present, target) = self.places
        return f"{prompt}:{present}:{target}"

    @property
    def places(self) -> tuple[int, tuple[int, int]]:
        present, target = self.present, self.target
        return self.prompt.pk, (present.pk if present else 0, target.pk if target else 0)


def returns_of(workspace: Workspace, prompts: Sequence[AgentPrompt]) -> list[Return]:
    """Two questions, however many prompts; the same rule as the verb has for each."""
    ids = [prompt.pk for prompt in prompts]
    labels = PromptLabel.objects.in_workspace(workspace).filter(name=PRODUCTION, prompt__in=ids)
    moves = LabelMove.objects.in_workspace(workspace).filter(
        prompt=OuterRef("prompt_id"), label=PRODUCTION, version__number__lt=OuterRef("version__number")
    )
    target = Subquery(moves.order_by("-sequence").values("version")[:1])
    places = {
        prompt: (present, earlier)
        for prompt, present, earlier in labels.annotate(target=target).values_list(
            "prompt_id", "version_id", "target"
        )
    }
    wanted = {key for pair in places.values() for key in pair if key}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=wanted)
    versions = {version.pk: version for version in rows.defer(*HEAVY)}
    return [told(prompt, *(versions.get(key) for key in places.get(prompt.pk, (0, 0)))) for prompt in prompts]


def told(prompt: AgentPrompt, present: PromptVersion | None, target: PromptVersion | None) -> Return:
    if present is None:
        return Return(prompt, None, None, _("Nothing is in production yet."))
    if target is None:
        return Return(prompt, present, None, _("Production was never at an earlier version."))
    return Return(prompt, present, target)
