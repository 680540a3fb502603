// A deck. A key shows the next part of a slide or turns to the next one; its address is #s3. The
// speaker's window is the same deck with its notes: it sends its keys here and follows.
const root = document.documentElement;
const slides = [...document.querySelectorAll(".slide")];
for (const image of document.images) image.loading = "eager"; // sizes are needed at once
const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };
const speaks = location.search === "?speaker";
let speaker = null;

const shown = () => slides.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2);

const go = (to) => {
  slides[to]?.scrollIntoView({ behavior: "instant" });
  if (speaks && document.querySelector(".desk")) prepare(to); // the deck of a class has none
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

// The speaker's desk: the next slide, and a clock that starts when the first slide is left.
let began, planned;
const prepare = (to) => {
  if (!(to in slides)) return;
  if (to) began ??= Date.now();
  planned = slides[to].querySelector(".notes")?.dataset;
  const next = slides[to + 1];
  document.querySelector(".next").textContent = next ? "Next:" : "This is the last slide.";
  const copy = next?.cloneNode(true);
  for (const named of copy ? [copy, ...copy.querySelectorAll("[id]")] : []) named.removeAttribute("id");
  copy?.querySelector(".notes")?.remove();
  document.querySelector(".ahead").replaceChildren(...(copy ? [copy] : []));
  tick();
};

const tick = () => {
  if (!began) return;
  const gone = (Date.now() - began) / 60000;
  const late = planned ? gone - planned.to : 0;
  const early = planned ? planned.from - gone : 0;
  const off = late > 0 ? `, ${Math.ceil(late)} min behind` : early > 1 ? `, ${Math.floor(early)} min ahead` : "";
  const clock = `${Math.floor(gone)}:${String(Math.floor((gone * 60) % 60)).padStart(2, "0")}`;
  const plan = planned ? `; planned here ${planned.from} to ${planned.to}` : "";
  const watch = document.querySelector(".watch");
  watch.textContent = `${clock} of ${document.querySelector(".desk").dataset.minutes}:00${plan}${off}`;
  watch.classList.toggle("late", late > 0);
};

// Text becomes smaller, down to a least size, until it leaves room for a picture and the slide is no higher than the window.
const fit = () => {
  for (const slide of slides) {
    const body = slide.querySelector(":scope > div");
    const drawn = slide.querySelector("figure img[height]"); // its letters are 10 points of 4/3 pixels
    const small = () => drawn && (Math.min(drawn.clientHeight / drawn.getAttribute("height"), drawn.clientWidth / drawn.getAttribute("width")) * 40) / 3 < 18;
    const over = () => slide.scrollHeight > innerHeight + 1 || body.scrollHeight > body.clientHeight + 1 || small();
    body.style.setProperty("--fit", 1);
    for (let size = 0.95; innerWidth > 720 && size > 0.7 && over(); size -= 0.05) body.style.setProperty("--fit", size);
  }
};

for (const button of document.querySelectorAll(".credit"))
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(`${button.dataset.cite}, ${location.href}`);
    button.blur(); // the space bar turns the slide
  });

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.type === "range" && event.key.startsWith("Arrow")) return; // the slider of an explorer
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
if (speaks) setInterval(tick, 1000);
addEventListener("load", () => MathJax.startup.promise.then(fit).then(() => (location.hash || speaks) && go(Number(location.hash.slice(2)))));
addEventListener("resize", fit);
