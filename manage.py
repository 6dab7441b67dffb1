#!/usr/bin/env python
"""Django's command line for Dramatis."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line

    from project.database.config import mark_command_process

    mark_command_process()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
