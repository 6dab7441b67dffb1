"""Pages to import and export IDENTITY.md, SOUL.md and USER.md."""

from typing import Any, ClassVar, TypeVar

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from personas.errors import InvalidInput
from personas.models import Named
from personas.persona_files.forms import PersonaFileImportForm
from personas.persona_files.services import parse_persona_file, render_persona_file
from personas.records.views import RecordPages, get_query_param
from personas.roles import Permission
from personas.selectors import list_agents
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import IMPORT_REVIEW

N = TypeVar("N", bound=Named)
MAX_ASSIGNABLE_AGENTS = 20


class PersonaFilePages(RecordPages[N]):
    """Pages of a kind of record that can be imported from and exported to a Markdown file."""

    file_name: ClassVar[str]

    def detail_context(self, request: WorkspaceRequest, record: N) -> dict[str, Any]:
        """Offer the agents that could use the record."""
        agents = list_agents(request.workspace).filter(archived_at=None)
        return {"assignable_agents": agents[:MAX_ASSIGNABLE_AGENTS]}

    def get_created_url(self, request: WorkspaceRequest, record: N) -> str:
        """Return the form of the agent from which the record was created, with the record selected."""
        slug = get_query_param(request, "agent")[:100]
        agent = list_agents(request.workspace).filter(slug=slug, archived_at=None).first() if slug else None
        if agent is None:
            return super().get_created_url(request, record)
        form_url = reverse("agents:edit", args=[request.workspace.slug, agent.slug])
        return f"{form_url}?{urlencode({self.usage_param: record.slug})}"

    def more_urls(self) -> list[URLPattern]:
        return [
            path("import/", self.import_file, name="import"),
            path("<slug:key>/file/", self.export_file, name="file"),
        ]

    @require_permission(Permission.EDIT, IMPORT_REVIEW)
    def import_file(self, request: WorkspaceRequest) -> HttpResponse:
        form = PersonaFileImportForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            try:
                values = parse_persona_file(self.model, form.cleaned_data["text"])
                record = self.create(request, values | {"name": form.cleaned_data["name"]})
            except InvalidInput as error:
                for name, field_errors in error.errors.items():
                    for message in field_errors:
                        form.add_error("name" if name == "name" else "text", message)
            else:
                messages.success(
                    request,
                    _("%(file)s imported as “%(record)s”.") % {"file": self.file_name, "record": record},
                )
                return redirect(self.get_record_url(record))
        return self.render_page(request, "import", {"form": form}, status=422 if form.errors else 200)

    def export_file(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        response = HttpResponse(
            render_persona_file(self.find(request, key)), content_type="text/markdown; charset=utf-8"
        )
        response["Content-Disposition"] = f'attachment; filename="{self.file_name}"'
        return response
