// Ages beside dates ("3 months ago"), counted when the page is read and not when it was built; formulas in the text that
// are wider than it scroll in a box of their own; light colours on paper.
addEventListener("DOMContentLoaded", () => {
  const units = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const time of document.querySelectorAll("time.age")) {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
    time.after(` (${words.format(Math.round(seconds / size), unit)})`);
  }

  const box = () => {
    const formulas = [...document.querySelectorAll("article mjx-container:not([display])")];
    for (const formula of formulas) formula.classList.remove("wide-formula");
    const room = (formula) => formula.closest("p, li, dd, td, th, figcaption, summary, div")?.clientWidth ?? Infinity;
    for (const formula of formulas.filter((f) => f.offsetWidth > room(f))) formula.classList.add("wide-formula");
  };
  addEventListener("load", () => window.MathJax?.startup?.promise?.then(box));
  addEventListener("resize", box);

  const root = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => (root.dataset.theme = theme));
});
