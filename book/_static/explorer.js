// Explorers: Plotly figures, loaded from this site when they come into view, with the browser's own sliders.
addEventListener("DOMContentLoaded", () => {
  const boxes = document.querySelectorAll(".explorer");
  if (!boxes.length) return;
  const COLOURS = {
    light: ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"],
    dark: ["#56B4E9", "#F08A4B", "#2FC39B", "#E3A3C8", "#E69F00", "#8FB8FF"],
  };
  let script;
  const load = (url) =>
    (script ??= new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = url;
      element.onload = resolve;
      element.onerror = reject;
      document.head.append(element);
    }));

  function template() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--pst-color-${name}`).trim();
    const axis = { gridcolor: colour("border"), linecolor: colour("text-muted"), zerolinecolor: colour("border"), automargin: true };
    return {
      layout: {
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: colour("text-base"), family: style.getPropertyValue("--book-ui"), size: 14 },
        colorway: COLOURS[document.documentElement.dataset.theme] ?? COLOURS.light,
        xaxis: axis,
        yaxis: axis,
        margin: { t: 24, r: 16, b: 48, l: 56 },
        hoverlabel: { bgcolor: colour("surface"), font: { color: colour("text-base") } },
      },
    };
  }

  // One control per Plotly slider. Several sliders together name one frame: the steps' values joined by "|".
  function sliders(plot, specs) {
    const state = specs.map((spec) => spec.active ?? 0);
    const instant = { mode: "immediate", frame: { duration: 0, redraw: true }, transition: { duration: 0 } };
    const valueOf = (step) => String(step.value ?? step.label ?? "");
    const move = (index) => {
      const step = specs[index].steps[state[index]];
      if (specs.length > 1) return Plotly.animate(plot, [specs.map((s, i) => valueOf(s.steps[state[i]])).join("|")], instant);
      if ((step.method ?? "restyle") === "animate") return Plotly.animate(plot, step.args[0], instant);
      return step.method === "skip" ? null : Plotly[step.method ?? "restyle"](plot, ...step.args);
    };
    return specs.map((spec, index) => {
      const prefix = spec.currentvalue?.prefix ?? "";
      const suffix = spec.currentvalue?.suffix ?? "";
      const label = document.createElement("label");
      label.className = "explorer-slider";
      const words = document.createElement("output");
      const range = Object.assign(document.createElement("input"), { type: "range", min: 0, max: spec.steps.length - 1, step: 1, value: state[index] });
      const say = () => {
        words.textContent = `${prefix}${spec.steps[state[index]].label ?? valueOf(spec.steps[state[index]])}${suffix}`;
        range.setAttribute("aria-valuetext", words.textContent);
      };
      range.setAttribute("aria-label", (prefix.replace(/[:=\s]+$/, "") || spec.name || "slider").trim());
      range.addEventListener("input", () => {
        state[index] = Number(range.value);
        say();
        move(index);
      });
      say();
      label.append(words, range);
      return label;
    });
  }

  async function show(box) {
    const { data, layout, frames } = JSON.parse(box.querySelector("script").textContent);
    await load(box.dataset.plotly);
    const { sliders: specs = [], updatemenus, height, width, ...rest } = layout;
    const plot = Object.assign(document.createElement("div"), { className: "explorer-plot" });
    box.querySelector(".explorer-fallback").hidden = true;
    box.append(plot);
    const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["sendDataToCloud", "lasso2d", "select2d"] };
    await Plotly.newPlot(plot, data, { ...rest, template: template(), autosize: true }, config);
    if (frames.length) await Plotly.addFrames(plot, frames);
    box.append(...sliders(plot, specs));
    box.dataset.ready = "true";
    new MutationObserver(() => Plotly.relayout(plot, { template: template() })).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        show(target).catch(() => (target.querySelector(".explorer-fallback").hidden = false));
      }
    },
    { rootMargin: "400px" },
  );
  boxes.forEach((box) => seen.observe(box));
});
