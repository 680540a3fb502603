"""The figures of the built site, one by one in a browser."""

import pytest

pytestmark = pytest.mark.browser

# Pairs of labels that lie on each other; the pieces of a formula share their parent.
OVERLAPS = """() => {
  const boxes = new Map();
  for (const text of document.querySelectorAll("text")) {
    const words = text.textContent.trim(), box = text.getBoundingClientRect();
    if (words) boxes.set(text.parentElement, [...(boxes.get(text.parentElement) ?? []), { words, box }]);
  }
  const labels = [...boxes.values()].map((parts) => ({
    words: parts.map(({ words }) => words).join(""),
    left: Math.min(...parts.map(({ box }) => box.left)), right: Math.max(...parts.map(({ box }) => box.right)),
    top: Math.min(...parts.map(({ box }) => box.top)), bottom: Math.max(...parts.map(({ box }) => box.bottom)),
  }));
  const across = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const down = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return labels.flatMap((a, at) => labels.slice(at + 1).filter((b) => across(a, b) > 2 && down(a, b) > 3.5)
    .map((b) => `${a.words} lies on ${b.words}`));
}"""
TWO = '<svg xmlns="http://www.w3.org/2000/svg"><g><text y="20">depth 3</text></g><g><text y="{}">6</text></g></svg>'


def test_labels_on_each_other_are_seen(browser):
    page = browser.new_page()
    found = []
    for y in (22, 60):
        page.set_content(TWO.format(y))
        found.append(page.evaluate(OVERLAPS))
    page.close()
    assert found == [["depth 3 lies on 6"], []]


def test_no_two_labels_of_a_figure_lie_on_each_other(browser, site, chapters):
    page, wrong = browser.new_page(viewport={"width": 1400, "height": 1000}), []
    for chapter in chapters:
        for image in chapter.article.select("figure img[src*='_images/']"):
            page.set_content((site / "_images" / image["src"].rsplit("/", 1)[1]).read_text("utf-8"))
            wrong += [f"{chapter.name}: {each}" for each in page.evaluate(OVERLAPS)]
    page.close()
    assert not wrong
