"""One found file: its words, its history, and what can be done with it."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
urls = (urlpatterns, "files")
