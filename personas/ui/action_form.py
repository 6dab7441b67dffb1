"""What forms of this app share."""

from django import forms

from personas.errors import InvalidInput


class ActionForm(forms.Form):
    """Values for one verb; what the verb refuses stands under the field it speaks of."""

    def add_service_errors(self, error: InvalidInput) -> None:
        for name, messages in error.errors.items():
            for message in messages:
                self.add_error(name if name in self.fields else None, message)
