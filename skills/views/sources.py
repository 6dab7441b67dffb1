"""Sources: their state, last run, schedule and progress."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
urls = (urlpatterns, "sources")
