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
