// Ages beside dates ("3 months ago"), counted when the page is read and not when it was built; light colours on paper.
addEventListener("DOMContentLoaded", () => {
  const units = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const time of document.querySelectorAll("time.age")) {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
    time.after(` (${words.format(Math.round(seconds / size), unit)})`);
  }

  const root = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => (root.dataset.theme = theme));
});
