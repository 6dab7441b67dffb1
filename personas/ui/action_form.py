"""Base form of actions that are not plain record edits."""

from django import forms

from personas.errors import InvalidInput


class ActionForm(forms.Form):
    """Form for one service call; errors of the service are shown under the fields they belong to."""

    def add_service_errors(self, error: InvalidInput) -> None:
        for name, messages in error.errors.items():
            for message in messages:
                self.add_error(name if name in self.fields else None, message)
