"""Skills in the operators' back office."""

from django.contrib import admin

from personas.admin import RecordAdmin
from skills.models import Skill

admin.site.register(Skill, RecordAdmin)
