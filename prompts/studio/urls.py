"""URLs of the Studio: editor, live preview, saved drafts and the review before saving."""

from django.urls import path

from prompts.studio import draft_views, preview_views, review_views
from prompts.studio import views as studio_views

urls = (
    [
        path("studio/", studio_views.studio_home, name="home"),
        path("studio/<slug:agent>/", studio_views.studio_editor, name="show"),
        path("studio/<slug:agent>/preview/", preview_views.studio_preview, name="preview"),
        path("studio/<slug:agent>/layouts/", preview_views.studio_layouts, name="layouts"),
        path("studio/<slug:agent>/state/", studio_views.studio_updates, name="state"),
        path("studio/<slug:agent>/save/", draft_views.save_draft_view, name="save"),
        path("studio/<slug:agent>/review/", review_views.studio_review, name="review"),
        path("drafts/", draft_views.index, name="drafts"),
        path("drafts/discard/", draft_views.discard_draft_view, name="discard"),
    ],
    "studio",
)
