"""Icons: drawn from the sprite, silent unless they are named, and whatever they are given is only words."""

from django.utils.safestring import mark_safe

from personas.templatetags.ui import icon


def test_an_icon_is_silent_unless_it_is_named():
    assert (
        icon("agent")
        == '<svg class="dr-icon" aria-hidden="true"><use href="/static/icons.svg#agent"></use></svg>'
    )
    said = icon("agent", label="An <agent>", size="lg")
    assert 'class="dr-icon dr-icon-lg" role="img" aria-label="An &lt;agent&gt;"' in said


def test_what_was_drawn_once_with_safe_words_lets_nothing_in():
    for name in (mark_safe('x"><b>'), 'x"><b>'):
        for _ in range(2):
            assert "#x&quot;&gt;&lt;b&gt;" in icon(name)
