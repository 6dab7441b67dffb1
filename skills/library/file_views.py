"""Pages to import a SKILL.md, copy a discovered skill, and export a skill as a zip archive."""

from collections.abc import Iterable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from core.text.lists import format_short_list
from personas.errors import DomainError
from personas.records.views import RecordPages, post_only
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import IMPORT_REVIEW, Reviewed
from skills.library.forms import SkillImportForm
from skills.library.selectors import list_found_skills
from skills.library.services import (
    InvalidSkillFile,
    build_skill_archive,
    copy_found_skill,
    get_copyable_revision,
    import_skill,
)
from skills.models import Skill
from skills.skill_format.decode import decode_text
from skills.skill_format.parser import SkillProblem

MAX_PATHS_SHOWN = 20


class SkillFilePages(RecordPages[Skill]):
    """Pages of skill records, plus import, copy and export."""

    def more_urls(self) -> list[URLPattern]:
        return [
            path("import/", self.import_file, name="import"),
            # No conflict with a skill named "copy": no page of a skill has a number right after the name.
            path("copy/<int:file_id>/", post_only(self.copy), name="copy"),
            path("<slug:key>/export/", self.export, name="export"),
        ]

    @require_permission(Permission.EDIT, IMPORT_REVIEW)
    def import_file(self, request: WorkspaceRequest) -> HttpResponse:
        form = SkillImportForm(request.POST or None, request.FILES or None)
        if request.method != "POST" or not form.is_valid():
            return self.render_page(request, "import", {"form": form}, status=422 if form.errors else 200)
        source = form.get_source()
        try:
            skill, warnings = import_skill(request.workspace, source, by=request.actor)
        except InvalidSkillFile as error:
            form.set_text(decode_text(source)[0])
            context = {"form": form, "problems": error.problems}
            return self.render_page(request, "import", context, status=422)
        return self.redirect_to_skill(
            request,
            skill,
            warnings,
            _("Imported as “%(skill)s”. It is not assigned to any agent yet.") % {"skill": skill},
        )

    @require_permission(Permission.EDIT, Reviewed())
    def copy(self, request: WorkspaceRequest, file_id: int) -> HttpResponse:
        """Copy a discovered skill to a skill record, and name the files that are not copied.

        If the text is not a valid skill, show the import form with the text and its problems.
        """
        rows = list_found_skills(request.workspace).select_related("latest__content", "active__content")
        file = get_object_or_404(rows, pk=file_id)
        try:
            copied = copy_found_skill(file, by=request.actor)
        except InvalidSkillFile as error:
            text, _warnings = decode_text(bytes(get_copyable_revision(file).content.data or b""))
            context = {"form": SkillImportForm(initial={"text": text}), "problems": error.problems}
            return self.render_page(request, "import", context, status=422)
        except DomainError as error:
            messages.error(request, error.message)
            return redirect("files:detail", request.workspace.slug, file.pk)
        message = _(
            "SKILL.md copied as “%(skill)s”. The copy is not assigned to any agent "
            "yet. Agents that have both the original and the copy use the copy."
        )
        if copied.not_copied:
            paths = format_short_list(copied.not_copied, MAX_PATHS_SHOWN)
            messages.warning(
                request,
                _("Not copied: %(paths)s. Skills written in Dramatis cannot include other files.")
                % {"paths": paths},
            )
        return self.redirect_to_skill(
            request, copied.skill, copied.warnings, message % {"skill": copied.skill}
        )

    def redirect_to_skill(
        self, request: WorkspaceRequest, skill: Skill, warnings: Iterable[SkillProblem], message: str
    ) -> HttpResponse:
        messages.success(request, message)
        for warning in warnings:
            messages.warning(
                request, _("Line %(line)s: %(problem)s") % {"line": warning.line, "problem": warning.message}
            )
        return redirect(self.get_record_url(skill))

    def export(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        skill = self.find(request, key)
        try:
            return zip_response(skill.name, build_skill_archive(skill))
        except DomainError as error:
            messages.error(request, error.message)
            return redirect(self.get_record_url(skill))


def zip_response(name: str, data: bytes) -> HttpResponse:
    response = HttpResponse(data, content_type="application/zip")
    response["Content-Disposition"] = content_disposition_header(True, f"{name}.zip")
    return response
