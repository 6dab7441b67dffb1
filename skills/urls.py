"""The pages of the skills app."""

from django.urls import include, path

from skills.views import SkillPages

skills = SkillPages()

urlpatterns = [path(f"w/<slug:workspace>/{skills.name}/", include(skills.urls()))]
