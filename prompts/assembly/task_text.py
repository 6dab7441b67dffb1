"""Format the task that a call is bound to: title, description, status and steps."""

from prompts.assembly.slots import StepInput, TaskInput
from prompts.assembly.text import collapse_whitespace


def format_task(task: TaskInput) -> str:
    """Format a task; empty fields produce no line."""
    name = f"task #{task.number}" if task.number else "a task"
    lines = [
        f"You are working on {name}. Focus solely on progressing this task.\n",
        f"Title: {collapse_whitespace(task.title)}",
    ]
    if task.description:
        lines.append(f"Description: {task.description}")
    if task.status:
        lines.append(f"Status: {collapse_whitespace(task.status)}")
    if task.steps:
        lines.append("Steps:")
        lines += [f"{number}. {step}" for number, step in enumerate(format_task_steps(task.steps), start=1)]
    return "\n".join(lines)


def format_task_steps(steps: tuple[StepInput, ...]) -> list[str]:
    """Mark the first open step with `→`, later open ones with `○` and finished ones with `✓`."""
    first_open = next((index for index, step in enumerate(steps) if not step.is_done), None)
    return [
        f"✓ {collapse_whitespace(step.title)} (done)"
        if step.is_done
        else f"{'→' if index == first_open else '○'} {collapse_whitespace(step.title)}"
        for index, step in enumerate(steps)
    ]
