"""Email backend of development: write each email to a file and print one line that says where to read it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.mail.backends.filebased import EmailBackend as FileBackend
from django.core.mail.message import EmailMessage


class EmailBackend(FileBackend):
    def __init__(self, **options: Any) -> None:
        folder = Path(settings.VAR) / "mail"
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(**(options | {"file_path": str(folder)}))

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            recipients = ", ".join(message.recipients())
            sys.stderr.write(
                f"Email to {recipients}: {message.subject}. Read it at {settings.PUBLIC_URL}/dev/mail/\n"
            )
        return super().send_messages(email_messages)
