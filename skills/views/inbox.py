"""The context inbox: what was found, what changed, what waits for someone."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
urls = (urlpatterns, "inbox")
