"""The pages of the prompts app; they come with stored versions."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
