"""Base form for actions other than creating and editing records."""

from django import forms

from personas.errors import InvalidInput


class ActionForm(forms.Form):
    """Form whose values are passed to one service function.

    Validation errors of the service are shown on the fields with the same names, or above the form.
    """

    def add_service_errors(self, error: InvalidInput) -> None:
        for name, messages in error.errors.items():
            for message in messages:
                self.add_error(name if name in self.fields else None, message)
