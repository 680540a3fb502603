"""Set the preview of a shared link: the chapter's surprise in plain words, and the name of the book.

sphinxext-opengraph writes the tags. It takes a page's own words from the page's metadata, which the builder writes. A
relative address means nothing to whoever reads a shared link, so `og:url` is left out where the site has no address.
"""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

FILE = "shared.json"
_RELATIVE_URL = re.compile(r'<meta property="og:url" content="(?!https?:)[^"]*" />\n?')


def name_site(app: Sphinx, config: Config) -> None:
    """Set the site's name to the book's title; Jupyter Book sets no project."""
    config.ogp_site_name = config.html_title


def tell(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Set a page's description before the tags are written."""
    path = Path(app.srcdir) / FILE
    said = json.loads(path.read_text("utf-8")).get(page) if doctree and path.is_file() else None
    if said is None:
        return
    words = escape(said)
    context["meta"] = (context["meta"] or {}) | {"og:description": words}
    context["metatags"] += f'<meta name="description" content="{words}" />\n'


def finish(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Remove an address without a host."""
    context["metatags"] = _RELATIVE_URL.sub("", context.get("metatags", ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register handlers before and after sphinxext-opengraph."""
    app.connect("config-inited", name_site)
    app.connect("html-page-context", tell, priority=400)
    app.connect("html-page-context", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
