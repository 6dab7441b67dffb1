"""The icon tag: SVG sprite, accessible names, escaping."""

from django.utils.safestring import mark_safe

from personas.templatetags.ui import icon


def test_an_icon_is_hidden_from_screen_readers_unless_it_has_a_label():
    assert (
        icon("agent")
        == '<svg class="dr-icon" aria-hidden="true"><use href="/static/icons.svg#agent"></use></svg>'
    )
    html = icon("agent", label="An <agent>", size="lg")
    assert 'class="dr-icon dr-icon-lg" role="img" aria-label="An &lt;agent&gt;"' in html


def test_a_cached_icon_escapes_safe_strings_too():
    for name in (mark_safe('x"><b>'), 'x"><b>'):
        for _ in range(2):
            assert "#x&quot;&gt;&lt;b&gt;" in icon(name)
