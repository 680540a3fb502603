// Where a search leads (?q=words#anchor): the words are marked in what the anchor names, and the first is brought into view.
addEventListener("DOMContentLoaded", async () => {
  const query = new URLSearchParams(location.search).get("q")?.trim();
  if (!query || !globalThis.Highlight || document.querySelector(".found-form")) return;
  const escape = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const whole = (words) => new RegExp(`(?<![\\p{L}\\p{N}])(?:${words})(?![\\p{L}\\p{N}])`, "giu");
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const place = named ?? document.querySelector("article");
  await globalThis.MathJax?.startup?.promise;

  const ranges = [];
  const mark = (pattern) => {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (text.parentElement.closest("script, style, mjx-container, .headerlink")) continue;
      for (const { index, 0: found } of text.data.matchAll(pattern)) {
        const range = new Range();
        range.setStart(text, index);
        range.setEnd(text, index + found.length);
        ranges.push(range);
      }
    }
  };
  mark(whole(query.split(/\s+/).map(escape).join("\\s+"))); // the words together, else each by itself
  if (!ranges.length) mark(whole(query.split(/\s+/).map(escape).join("|")));
  if (!ranges.length) return;
  CSS.highlights.set("found", new Highlight(...ranges));
  const shown = ranges.find((range) => range.getBoundingClientRect().height) ?? ranges[0];
  for (let fold = shown.startContainer.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const { top, bottom } = shown.getBoundingClientRect();
  if (top < 80 || bottom > innerHeight) shown.startContainer.parentElement.scrollIntoView({ block: "center" });
});
