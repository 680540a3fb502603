// Ages beside dates ("3 months ago"), counted when the page is read and not when it was built; formulas in the text that
// are wider than it scroll in a box of their own; folds open for links and on paper; those of the contents have names.
addEventListener("DOMContentLoaded", () => {
  for (const fold of document.querySelectorAll(".bd-links summary"))
    fold.setAttribute("aria-label", `Below ${fold.closest("li").querySelector("a").textContent.trim()}`);

  const units = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const time of document.querySelectorAll("time.age")) {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
    time.after(` (${words.format(Math.round(seconds / size), unit)})`);
  }

  // Formulas are typeset when they come near the window, so each is measured after that.
  let due = false;
  const fit = () => {
    due = false;
    const fresh = [...document.querySelectorAll("article mjx-container:not([display], [data-fitted]):has(mjx-math)")];
    const room = (formula) => formula.closest("p, li, dd, td, th, figcaption, summary, div")?.clientWidth ?? Infinity;
    const wide = fresh.filter((formula) => formula.offsetWidth > room(formula));
    for (const formula of fresh) formula.dataset.fitted = "";
    for (const formula of wide) formula.classList.add("wide-formula");
    for (const box of document.querySelectorAll("article .fits")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };
  const soon = () => (due ||= !!requestAnimationFrame(fit));
  new MutationObserver(soon).observe(document.querySelector("article") ?? document.body, { childList: true, subtree: true });
  addEventListener("resize", () => {
    for (const formula of document.querySelectorAll("[data-fitted]")) {
      formula.classList.remove("wide-formula");
      delete formula.dataset.fitted;
    }
    soon();
  });

  // One small sign on a figure holds where its data come from, the claims that it shows, and how to cite it.
  const heading = document.querySelector("article h1")?.cloneNode(true);
  for (const part of heading?.querySelectorAll(".section-number, .headerlink") ?? []) part.remove();
  for (const figure of document.querySelectorAll("article figure[id]:has(.caption-number)")) {
    const number = figure.querySelector(".caption-number").textContent.trim();
    const sign = Object.assign(document.createElement("button"), { type: "button", className: "figure-sign", textContent: "i", title: "About this figure" });
    const fold = Object.assign(document.createElement("span"), { className: "sign-fold", hidden: true });
    sign.setAttribute("aria-label", `About ${number}`);
    sign.setAttribute("aria-expanded", "false");
    sign.addEventListener("click", () => sign.setAttribute("aria-expanded", !(fold.hidden = !fold.hidden)));
    const links = [...(figure.closest(".cell")?.querySelectorAll(".cell-links") ?? [])];
    if (links.length) figure.querySelector(".evidence-of")?.remove();
    fold.append(...figure.querySelectorAll(".provenance, .evidence-of"), ...links);
    if (navigator.clipboard) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "cite", textContent: "CC BY 4.0: copy citation" });
      button.addEventListener("click", async () => {
        const place = `${location.href.split("#")[0]}#${figure.id}`;
        await navigator.clipboard.writeText(`${number} of “${heading.textContent.trim()}”, Transformers, Derived, CC BY 4.0, ${place}`);
        button.textContent = "Copied";
      });
      fold.append(" ", button);
    }
    (figure.querySelector("figcaption > p:last-of-type") ?? figure.querySelector("figcaption")).append(" ", sign, fold);
  }

  // A link into a fold opens it; one to a cell whose code is folded shows the code.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const cell = target?.matches(".cell > span:empty") ? target.parentElement : target;
    const folds = [...(cell?.querySelectorAll(":scope > details.hide") ?? [])];
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) folds.push(fold);
    if (!folds.some((fold) => !fold.open)) return;
    for (const fold of folds) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // On paper proofs are open and colours are those of the day.
  const root = document.documentElement;
  let theme;
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".proof-fold:not([open])")];
    for (const proof of opened) proof.open = true;
    theme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    for (const proof of opened) proof.open = false;
    root.dataset.theme = theme;
  });
});
