// A deck. A key shows the next part of a slide or turns to the next one; its address is #s3. What is too high for the
// window becomes smaller. The speaker's window is the same deck with its notes: it sends its keys here and follows.
const root = document.documentElement;
const slides = [...document.querySelectorAll(".slide")];
for (const image of document.images) image.loading = "eager"; // sizes are needed at once
const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
const speaks = location.search === "?speaker";
let speaker = null;

const shown = () => slides.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2);

const go = (to) => {
  slides[to]?.scrollIntoView({ behavior: "instant" });
  if (to in slides && !speaks) history.replaceState(null, "", `#s${to}`);
  speaker?.postMessage({ slide: to }, "*"); // "*": a file has no origin
};

const press = (key) => {
  const step = steps[key];
  if (key === "f") root.requestFullscreen?.();
  if (key === "o") overview(shown());
  if (key === "n") speaker = open(`${location.pathname}?speaker#s${shown()}`, "speaker", "width=1000,height=800");
  if (!step || root.classList.contains("overview")) return;
  root.classList.add("reveals");
  const part = slides[shown()].querySelector(".part:not(:first-child, .seen)");
  if (step > 0 && part) part.classList.add("seen");
  else go(shown() + step);
};

const overview = (to) => {
  root.classList.toggle("overview");
  fit();
  go(to);
};

const fit = () => {
  for (const slide of slides) {
    const body = slide.querySelector(":scope > div");
    body.style.zoom = 1;
    const spare = slide.clientHeight - body.offsetHeight;
    if (innerWidth > 720 && slide.clientHeight > innerHeight) body.style.zoom = (innerHeight - spare) / body.offsetHeight;
  }
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in steps) event.preventDefault();
  if (speaks) opener.postMessage({ key: event.key }, "*");
  else press(event.key);
});
addEventListener("message", ({ data, source }) => {
  if (speaks && source === opener) go(data.slide);
  else if (source === speaker) press(data.key);
});
slides.forEach((slide, place) => slide.addEventListener("click", (event) => {
  if (!root.classList.contains("overview")) return;
  event.preventDefault();
  overview(place);
}));
// Who scrolls by hand sees every part.
for (const kind of ["wheel", "touchmove"]) addEventListener(kind, () => root.classList.remove("reveals"), { passive: true });
root.classList.toggle("speaker", speaks);
addEventListener("load", () => MathJax.startup.promise.then(fit).then(() => location.hash && go(Number(location.hash.slice(2)))));
addEventListener("resize", fit);
