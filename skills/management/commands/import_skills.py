"""Takes skills from a folder into a workspace."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.actors import Actor
from personas.models import Workspace
from skills.discovery import FoundFile, discover
from skills.discovery.harnesses import Harness, Rule
from skills.library.services import FILE_NAME, NotASkill, import_skill, is_same
from skills.models import Skill
from skills.skill_format.parser import Problem

BY = Actor(label="import_skills")
# Nothing but the skills right below the folder.
BELOW = Harness("import", (Rule("skill", (f"*/{FILE_NAME}",), "project"),))


class Command(BaseCommand):
    help = "Takes every NAME/SKILL.md of a folder into a workspace; one that is there already stays as it is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="the workspace's address, such as harbour")
        parser.add_argument("folder", type=Path, help="a folder of folders, each with a SKILL.md")

    def handle(self, *args: Any, workspace: str, folder: Path, **options: Any) -> None:
        home = Workspace.objects.filter(slug=workspace).first()
        if home is None:
            raise CommandError(f"There is no workspace “{workspace}”.")
        found = discover(folder, "", BELOW)
        for refusal in found.refusals:
            self.stderr.write(f"{refusal.path}: {refusal.reason}")
        taken = [self.take(home, file) for file in found.skills]
        failed = len(found.refusals) + taken.count(False)
        self.stdout.write(f"{taken.count(True)} taken in or there already, {failed} refused.")
        if failed:
            sys.exit(1)

    def take(self, workspace: Workspace, file: FoundFile) -> bool:
        """Each by itself: one bad file costs no other its place."""
        content, name = file.content or b"", file.path.partition("/")[0]
        known = Skill.objects.in_workspace(workspace).filter(name=name).first()
        if known is not None and is_same(known, content):
            self.stdout.write(f"{file.path}: there already")
            return True
        try:
            skill, warnings = import_skill(
                workspace, content, by=BY, folder=name, message=f"Imported from {file.path}"[:200]
            )
        except NotASkill as error:
            self.tell(file.path, error.problems)
            return False
        self.stdout.write(f"{file.path}: taken in as {skill.name}")
        self.tell(file.path, warnings)
        return True

    def tell(self, path: str, problems: tuple[Problem, ...]) -> None:
        for problem in problems:
            place = f" ({problem.field})" if problem.field else ""
            self.stderr.write(f"{path}:{problem.line}{place}: {problem.message}")
