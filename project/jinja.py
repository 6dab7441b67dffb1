"""The Jinja2 environment for the rows of long lists.

Pages are Django templates. A list of hundreds of rows takes Django's engine several times as long as Jinja2,
so the rows are in `.jinja` files, which the tag `render_rows` includes (decision 0020).
"""

from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from jinja2 import Environment, StrictUndefined

from core.text.shorten import shorten_text
from core.text.sizes import format_size
from personas.templatetags.ui import ago, avatar, badge, format_count, icon, short_id
from personas.ui.display_names import render_person
from personas.ui.navigation import build_url_format
from prompts.templatetags.fleet import MatrixHtml
from prompts.templatetags.prompt_panels import describe_memory_usage, usage_for_memory
from prompts.templatetags.studio import studio_row_text
from prompts.templatetags.versions import kind_css_class, label_badge, row_text, signed_number
from skills.templatetags.context_files import file_place, file_status_badge, glyphs, live_badge


def build_environment(**options: Any) -> Environment:
    """Build the environment. `options` come from Django's backend, which turns on autoescape.

    A name that the template was not given is an error instead of an empty text.
    """
    environment = Environment(**options | {"undefined": StrictUndefined})  # noqa: S701  # autoescape is in options
    environment.globals |= {
        "_": gettext,
        "ago": ago,
        "avatar": avatar,
        "badge": badge,
        "describe_memory_usage": describe_memory_usage,
        "file_place": file_place,
        "icon": icon,
        "label_badge": label_badge,
        "matrix_html": MatrixHtml,
        "row_text": row_text,
        "short_id": short_id,
        "live_badge": live_badge,
        "file_status_badge": file_status_badge,
        "studio_row_text": studio_row_text,
        "url_format": build_url_format,
        "usage_for_memory": usage_for_memory,
    }
    environment.filters |= {
        "shorten": shorten_text,
        "day": format_day,
        "filesize": format_size,
        "glyphs": glyphs,
        "intcomma": format_count,
        "kind_css_class": kind_css_class,
        "person": render_person,
        "signed_number": signed_number,
        "time": format_time,
    }
    return environment


def format_day(at: datetime) -> str:
    return date_format(timezone.localtime(at), "j M Y")


def format_time(at: datetime) -> str:
    return date_format(timezone.localtime(at), "j M Y, H:i:s T")
