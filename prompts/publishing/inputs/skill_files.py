"""Skill files: the SKILL.md of each skill that a prompt offers, as bots read it.

They are not part of the text, but a version names and stores them, so that bots read what was released.
"""

from prompts.assembly.segments import SkillFile
from prompts.publishing.inputs.convert import build_file_origin, build_record_origin
from skills.agent_context.effective import AgentSkill, EffectiveContext, EffectiveFile
from skills.library.services import SkillNotExportable, render_skill_file


def list_skill_files(context: EffectiveContext) -> tuple[SkillFile, ...]:
    """List the files of the skills that the agent uses, sorted by name."""
    files = [build_skill_file(skill) for skill in context.skills if skill.is_used]
    return tuple(sorted([file for file in files if file is not None], key=lambda file: file.name))


def build_skill_file(skill: AgentSkill) -> SkillFile | None:
    """Return the file of a skill; None if it cannot be written or its content was erased."""
    if skill.skill is not None:
        try:
            return SkillFile(skill.name, build_record_origin(skill.skill), render_skill_file(skill.skill))
        except SkillNotExportable:
            return None
    revision = skill.file.active if skill.file else None
    if skill.file is None or revision is None or revision.content.data is None:
        return None
    origin = build_file_origin(EffectiveFile("skill", skill.file))
    return SkillFile(skill.name, origin, bytes(revision.content.data))


def describe_missing_files(context: EffectiveContext, files: tuple[SkillFile, ...]) -> list[str]:
    """Return a message for each skill in use whose instructions bots cannot read."""
    names = {file.name for file in files}
    return [
        f"The instructions of the skill “{skill.name}” cannot be written as a SKILL.md. Edit the skill."
        for skill in context.skills
        if skill.is_used and skill.name not in names
    ]
