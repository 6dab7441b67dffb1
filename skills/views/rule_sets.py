"""The rules by which files are found, built in or a workspace's own copy."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
urls = (urlpatterns, "rule-sets")
