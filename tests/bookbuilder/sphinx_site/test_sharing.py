"""What a shared link shows: picture and words of its page, at an address that others can open."""

from types import SimpleNamespace

import pytest

from bookbuilder.sphinx_site import sharing

SAID = {"image": "_images/toy.png", "alt": "A <line>", "size": (1200, 630), "description": "Words."}


@pytest.mark.parametrize(
    ("site", "address"),
    [("https://book.org/it/", "https://book.org/it/_images/toy.png"), ("", "../_images/toy.png")],
)
def test_the_picture_of_a_page_is_found_from_the_site_or_from_the_page(site, address):
    app = SimpleNamespace(config=SimpleNamespace(ogp_site_url=site))
    context = {"metatags": "", "shared": SAID}
    sharing.finish(app, "notebooks/toy", "page.html", context, None)
    assert f'<meta property="og:image" content="{address}" />' in context["metatags"]
    assert '<meta property="og:image:alt" content="A &lt;line&gt;" />' in context["metatags"]
    assert '<meta property="og:image:width" content="1200" />' in context["metatags"]
    assert '<meta property="og:image:height" content="630" />' in context["metatags"]


def test_a_page_without_a_picture_gets_no_tags():
    context = {"metatags": ""}
    sharing.finish(SimpleNamespace(config=SimpleNamespace(ogp_site_url="")), "book/a", "page.html", context, None)
    assert context["metatags"] == ""
