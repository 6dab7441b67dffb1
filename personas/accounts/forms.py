"""Sign-up form."""

from typing import Any

from allauth.account.forms import SignupForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest


class EqualTimeSignupForm(SignupForm):  # type: ignore[misc]  # allauth ships no types
    """Sign-up form that hashes the password even if the address already has an account.

    Nothing is stored in that case. Without the hash, the shorter response time would reveal the account.
    """

    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            make_password(self.cleaned_data.get("password1"))
        return super().try_save(request)
