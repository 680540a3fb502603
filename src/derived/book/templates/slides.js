// Keys of the slides: one forward, one back, the full screen. What is too high for the window becomes smaller.
const slides = [...document.querySelectorAll(".slide")];
const steps = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 };

const shown = () => slides.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "f") document.documentElement.requestFullscreen?.();
  if (!(event.key in steps)) return;
  event.preventDefault();
  slides[shown() + steps[event.key]]?.scrollIntoView();
});

const fit = () => {
  for (const slide of slides) {
    const body = slide.querySelector(":scope > div");
    body.style.zoom = 1;
    const spare = slide.clientHeight - body.offsetHeight;
    if (innerWidth > 720 && slide.clientHeight > innerHeight) body.style.zoom = (innerHeight - spare) / body.offsetHeight;
  }
};
addEventListener("load", () => MathJax.startup.promise.then(fit));
addEventListener("resize", fit);
