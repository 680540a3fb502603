// From section to section by keyboard: the first stop in each leads to the next. It is seen when it has the focus.
addEventListener("DOMContentLoaded", () => {
  const sections = [...document.querySelectorAll("article > section > section[id]")];
  sections.slice(1).forEach((next, index) => {
    const heading = next.querySelector("h2")?.cloneNode(true);
    heading?.querySelector(".headerlink")?.remove();
    const link = document.createElement("a");
    Object.assign(link, { className: "skip-section", href: `#${next.id}`, textContent: `Skip to ${heading?.textContent ?? "the next section"}` });
    sections[index].prepend(link);
  });
});

// The search field and its keys lead to the page of search, which shows results as one types.
addEventListener("click", (event) => event.target.closest?.(".search-button__button") && search(event), true);
addEventListener("keydown", (event) => (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && search(event), true);
function search(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
  const field = document.querySelector(".found-form input");
  field ? field.focus() : location.assign(`${document.documentElement.dataset.content_root ?? ""}search.html`);
}
