"""Run the command as `python -m dramatis_client.command`."""

import sys

from dramatis_client.command.parser import main

sys.exit(main())
