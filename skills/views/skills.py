"""Skills written in the browser."""

from django.db.models import QuerySet

from personas.tenancy import WorkspaceRequest
from personas.views.records import RecordPages
from skills.forms.skills import SkillForm
from skills.models import Skill
from skills.selectors import skills_of


class SkillPages(RecordPages[Skill]):
    model, form = Skill, SkillForm
    name, one, icon, templates = "skills", "skill", "skill", "skills"
    lede = "Know-how in Markdown: agents see name and description, and load the rest when they need it."
    key, searched = "name", ("name", "description")

    def rows(self, request: WorkspaceRequest) -> QuerySet[Skill]:
        return skills_of(request.workspace)
