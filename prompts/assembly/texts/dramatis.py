"""Fixed texts of the dramatis layout."""

SKILLS_INTRODUCTION = (
    "Load a skill's full instructions before you follow it: with `use_skill`, or by reading its file."
)

PLANNING_TOOLS_INTRODUCTION = (
    "You cannot call these yourself; plan with them, and leave the call to whoever can."
)

BACKGROUND_NOTICE = (
    "This run has no audience: nothing you answer reaches the user. "
    "If something cannot wait, use the `notify_user` tool."
)

PLANNING_TEMPLATE = """\
For work of several steps keep a plan at:
{path}

Write it before you begin, tick off what is done, and change it when the work turns out otherwise.\
"""

PREVIOUS_ERROR_ADVICE = "Your last attempt failed. Mend what went wrong before you go on."
