"""View that loads the demo records into an empty workspace."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from personas.errors import DomainError
from personas.roles import Permission
from personas.selectors import list_agents
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import Automatic
from prompts.studio.demo.load import load_demo_records


@require_permission(Permission.MANAGE_SOURCES, Automatic("creates the records of the demo"))
@require_POST
def load_demo_view(request: WorkspaceRequest) -> HttpResponse:
    """Load the demo only into a workspace without agents, so that demo and real agents are not mixed."""
    if list_agents(request.workspace).exists():
        messages.error(request, _("This workspace already has agents. The demo needs an empty workspace."))
    else:
        try:
            load_demo_records(request.workspace, by=request.user)
        except DomainError as error:
            # Raised if existing records conflict with the demo, or if the form was submitted twice.
            messages.error(request, _("The demo could not be loaded. %(why)s") % {"why": error.message})
        else:
            messages.success(request, _("Demo loaded with seven agents from a small company."))
    return redirect("home", request.workspace.slug)
