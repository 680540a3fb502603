// What a link leads to, shown beside it while the pointer or the keyboard's focus is on it: theorems, formulas and
// figures of the same page, claims, and works of the bibliography, which scripts of the site hold. Escape closes it.
addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector("article.bd-article");
  if (!article) return;
  const SHOWN = "div.proof, div.math, figure, dl.glossary dt, div.admonition";
  const LEFT_OUT = ".headerlink, .statement-links, .proof-fold, details, script, button";
  const CLAIM = /\/claims\/(\w+)\.html#/;
  const WAIT = 250; // milliseconds before it opens and before it closes
  const box = Object.assign(document.createElement("div"), { id: "preview", className: "preview", hidden: true });
  box.setAttribute("role", "tooltip");
  document.body.append(box);
  let timer, open;

  // A script with what links lead to elsewhere, asked for with the first such link; it works from a disk as well.
  const asked = {};
  const load = (file) =>
    (asked[file] ??= new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = `${document.documentElement.dataset.content_root ?? ""}${file}`;
      script.onload = script.onerror = resolve;
      document.head.append(script);
    }));

  // A formula that has not come near the window is not typeset; its copy gets its source, for MathJax to typeset.
  function copied(target) {
    const copy = target.cloneNode(true);
    const sources = [...(window.MathJax?.startup?.document?.math ?? [])];
    const fresh = [...copy.querySelectorAll("mjx-container")];
    [...target.querySelectorAll("mjx-container")].forEach((formula, index) => {
      const source = !formula.querySelector("mjx-math") && sources.find(({ typesetRoot }) => typesetRoot === formula);
      if (source) fresh[index].replaceWith(source.display ? `\\[${source.math}\\]` : `\\(${source.math}\\)`);
    });
    for (const part of copy.querySelectorAll(LEFT_OUT)) part.remove();
    for (const part of [copy, ...copy.querySelectorAll("[id]")]) part.removeAttribute("id");
    if (!copy.matches("dt")) return copy;
    const term = document.createElement("div");
    term.append(copy, target.nextElementSibling.cloneNode(true));
    return term;
  }

  async function content(link) {
    const [page, id] = [link.href.split("#")[0], decodeURIComponent(link.hash.slice(1))];
    if (page === location.href.split("#")[0]) {
      const target = document.getElementById(id)?.closest(SHOWN);
      return target && copied(target);
    }
    const slug = CLAIM.exec(link.href)?.[1];
    if (slug) await load(`claims/${slug}.js`);
    if (page.endsWith("/bibliography.html")) await load("_static/works.js");
    const words = slug ? window.claims?.[slug]?.[id] : window.works?.[id];
    return words && Object.assign(document.createElement("p"), { innerHTML: words });
  }

  function place(link) {
    const [at, gap] = [link.getClientRects()[0] ?? link.getBoundingClientRect(), 6];
    const below = innerHeight - at.bottom > Math.min(box.offsetHeight, at.top);
    box.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
    box.style.top = `${below ? at.bottom + gap : Math.max(8, at.top - gap - box.offsetHeight)}px`;
    box.style.maxHeight = `${below ? innerHeight - at.bottom - gap - 8 : at.top - gap - 8}px`;
  }

  async function show(link) {
    open = link;
    const found = await content(link);
    if (!found || open !== link) return;
    window.MathJax?.typesetClear?.([box]);
    box.replaceChildren(found);
    box.style.maxHeight = "50vh";
    box.hidden = false;
    link.setAttribute("aria-describedby", "preview");
    place(link);
    await window.MathJax?.typesetPromise?.([box]);
    if (open === link) place(link);
  }

  function hide() {
    clearTimeout(timer);
    open?.removeAttribute("aria-describedby");
    open = undefined;
    box.hidden = true;
  }

  const linkOf = ({ target }) => target.closest?.("a[href*='#']:not(.headerlink)");
  const later = (what) => {
    clearTimeout(timer);
    timer = setTimeout(what, WAIT);
  };
  article.addEventListener("pointerover", (event) => {
    const link = linkOf(event);
    if (link && event.pointerType === "mouse" && link !== open) later(() => (hide(), show(link)));
  });
  for (const part of [article, box]) part.addEventListener("pointerout", () => later(hide));
  box.addEventListener("pointerover", () => clearTimeout(timer));
  article.addEventListener("focusin", (event) => {
    const link = linkOf(event);
    if (link?.matches(":focus-visible")) later(() => (hide(), show(link))); // one after another by Tab opens none
  });
  article.addEventListener("focusout", hide);
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("scroll", () => open && !box.hidden && place(open), { passive: true });
  article.addEventListener("click", hide);
});
