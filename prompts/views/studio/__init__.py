"""The pages of the Studio: the desk, its live preview, kept drafts and the review before saving."""

from django.urls import path

from prompts.views.studio import drafts, pages, previews, reviewing

urls = (
    [
        path("studio/", pages.home, name="home"),
        path("studio/<slug:agent>/", pages.show, name="show"),
        path("studio/<slug:agent>/preview/", previews.preview, name="preview"),
        path("studio/<slug:agent>/layouts/", previews.layouts, name="layouts"),
        path("studio/<slug:agent>/state/", pages.state, name="state"),
        path("studio/<slug:agent>/save/", drafts.save, name="save"),
        path("studio/<slug:agent>/review/", reviewing.review, name="review"),
        path("drafts/", drafts.index, name="drafts"),
        path("drafts/discard/", drafts.discard, name="discard"),
    ],
    "studio",
)
