"""The contact sheet: thumbnails of all screenshots on one HTML page, linked to the files."""

from html import escape
from itertools import groupby
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Screens</title><style>
body {{ font: 14px system-ui, sans-serif; margin: 2rem; background: #f6f6f8; color: #222 }}
h2 {{ margin: 2rem 0 .5rem; font-size: 1rem }}
div {{ display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start }}
figure {{ margin: 0 }} img {{ height: 220px; max-width: 360px; object-fit: cover; object-position: top;
border: 1px solid #ccc; border-radius: 6px; background: #fff }} figcaption {{ color: #555; font-size: 12px }}
</style></head><body><h1>{title}</h1>{groups}</body></html>
"""


def write_sheet(folder: Path, pictures: list[tuple[str, int, str, str]]) -> Path:
    groups = [
        f"<h2>{escape(name)}</h2><div>{''.join(map(figure, rows))}</div>"
        for name, rows in groupby(pictures, key=lambda picture: picture[0])
    ]
    page = folder / "index.html"
    page.write_text(PAGE.format(title=f"{len(pictures)} pictures", groups="".join(groups)), encoding="utf-8")
    return page


def figure(picture: tuple[str, int, str, str]) -> str:
    name, width, theme, file = (escape(str(part)) for part in picture)
    image = f'<a href="{file}"><img src="{file}" alt="{name}, {width} px, {theme}" loading="lazy"></a>'
    return f"<figure>{image}<figcaption>{width} px, {theme}</figcaption></figure>"
