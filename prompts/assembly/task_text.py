"""A bound task in words: what it is, how far it has come, and the order to stay with it."""

from prompts.assembly.slots import Step, Task
from prompts.assembly.text import collapse_whitespace


def format_task(task: Task) -> str:
    """Title, description, status and steps; what is empty leaves no line."""
    said = [
        f"You are working on task #{task.number}. Focus solely on progressing this task.\n",
        f"Title: {collapse_whitespace(task.title)}",
    ]
    if task.description:
        said.append(f"Description: {task.description}")
    if task.status:
        said.append(f"Status: {collapse_whitespace(task.status)}")
    if task.steps:
        said.append("Steps:")
        said += [f"{place}. {words}" for place, words in enumerate(format_task_steps(task.steps), start=1)]
    return "\n".join(said)


def format_task_steps(steps: tuple[Step, ...]) -> list[str]:
    """`→` marks the first step not done, `○` later open ones, `✓` done ones."""
    following = next((place for place, step in enumerate(steps) if not step.is_done), None)
    return [
        f"✓ {collapse_whitespace(step.title)} (done)"
        if step.is_done
        else f"{'→' if place == following else '○'} {collapse_whitespace(step.title)}"
        for place, step in enumerate(steps)
    ]
