"""The skills of one agent, each with where it comes from."""

from collections import Counter

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path

from personas.agents.selectors import agent_rows
from personas.tenancy.middleware import WorkspaceRequest
from skills.library.selectors import skills_of_agent


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(agent_rows(request.workspace), slug=agent)
    outlook, skills = skills_of_agent(row)
    context = {
        "agent": row,
        "outlook": outlook,
        "skills": skills,
        "used": sum(one.used.is_used for one in skills),
        "ways": Counter(one.kind for one in skills),
    }
    return render(request, "skills/agents/list.html", context)


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-skills")
