"""Send emails by SMTP with limits, so that a slow mail server holds few threads, and none for long.

Pages send emails within the request: the confirmation of an address, a reset, an invitation. EMAIL_TIMEOUT
applies to each step of the conversation, and resolving the name of the server has no time limit at all.
"""

from collections.abc import Sequence
from threading import Thread

from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from core.request_body import ClientSlots

# How many emails one process may send at once, and how long a request waits until its email is sent.
MAX_SENDING = 2
MAX_SEND_SECONDS = 10.0

sending_slots = ClientSlots(lambda: MAX_SENDING)


class MailServerUnavailable(OSError):
    """The mail server did not accept an email in time, or too many emails are being sent."""


class LimitedEmailBackend(EmailBackend):
    """Django's SMTP backend, in a thread of its own with a time limit and a limited number of slots.

    The slot is released when the thread ends, not when the request stops waiting. So a server that hangs
    holds as many threads as there are slots, and further emails are refused at once.
    """

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        if not sending_slots.acquire(is_few=False):
            raise MailServerUnavailable("Too many emails are being sent.")
        counts: list[int] = []
        errors: list[Exception] = []

        def send() -> None:
            try:
                counts.append(super(LimitedEmailBackend, self).send_messages(email_messages) or 0)
            except Exception as error:  # noqa: BLE001  # raised again by the request
                errors.append(error)
            finally:
                sending_slots.release(is_few=False)

        thread = Thread(target=send, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            sending_slots.release(is_few=False)
            raise MailServerUnavailable("No thread could be started.") from None
        thread.join(MAX_SEND_SECONDS)
        if errors:
            if isinstance(errors[0], OSError):
                # Errors of smtplib and of sockets are OSErrors.
                raise MailServerUnavailable("The mail server did not accept the email.") from errors[0]
            raise errors[0]
        if not counts:
            raise MailServerUnavailable(f"The email was not sent within {MAX_SEND_SECONDS:g} seconds.")
        return counts[0]
