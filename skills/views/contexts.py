"""What an agent reads from files, and from where."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
urls = (urlpatterns, "contexts")
