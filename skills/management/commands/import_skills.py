"""Management command: import skills from a folder into a workspace."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.actors import Actor
from personas.models import Workspace
from skills.discovery import DiscoveredFile, discover_files
from skills.discovery.harnesses import DiscoveryRule, Harness
from skills.library.services import SKILL_FILE_NAME, InvalidSkillFile, import_skill, is_same_skill
from skills.models import Skill
from skills.skill_format.parser import SkillProblem

IMPORT_ACTOR = Actor(label="import_skills")
# Discovery rules that match only `<folder>/<name>/SKILL.md`, not skills in deeper folders.
IMPORT_HARNESS = Harness("import", (DiscoveryRule("skill", (f"*/{SKILL_FILE_NAME}",), "project"),))


class Command(BaseCommand):
    help = "Import every NAME/SKILL.md of a folder into a workspace. Existing skills are not changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="workspace slug, for example harbour")
        parser.add_argument("folder", type=Path, help="folder whose subfolders contain a SKILL.md each")

    def handle(self, *args: Any, workspace: str, folder: Path, **options: Any) -> None:
        target = Workspace.objects.filter(slug=workspace).first()
        if target is None:
            raise CommandError(f"Workspace “{workspace}” not found.")
        discovered = discover_files(folder, "", IMPORT_HARNESS)
        for refusal in discovered.refusals:
            self.stderr.write(f"{refusal.path}: {refusal.reason}")
        results = [self.import_file(target, file) for file in discovered.skills]
        failed = len(discovered.refusals) + results.count(False)
        self.stdout.write(f"{results.count(True)} imported or already present, {failed} rejected.")
        if failed:
            sys.exit(1)

    def import_file(self, workspace: Workspace, file: DiscoveredFile) -> bool:
        """Import one skill file. Return False if the file is invalid, and write its problems to stderr."""
        content, name = file.content or b"", file.path.partition("/")[0]
        existing = Skill.objects.in_workspace(workspace).filter(name=name).first()
        if existing is not None and is_same_skill(existing, content):
            self.stdout.write(f"{file.path}: already present")
            return True
        try:
            skill, warnings = import_skill(
                workspace, content, by=IMPORT_ACTOR, folder=name, message=f"Imported from {file.path}"[:200]
            )
        except InvalidSkillFile as error:
            self.write_problems(file.path, error.problems)
            return False
        self.stdout.write(f"{file.path}: imported as {skill.name}")
        self.write_problems(file.path, warnings)
        return True

    def write_problems(self, path: str, problems: tuple[SkillProblem, ...]) -> None:
        for problem in problems:
            field = f" ({problem.field})" if problem.field else ""
            self.stderr.write(f"{path}:{problem.line}{field}: {problem.message}")
