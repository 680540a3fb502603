// Explorers: Plotly figures, loaded from this site when they come into view, with the browser's own sliders. Where these
// stand is in the address, #explorer-1=3,0 (an explorer's anchor and its steps, from 0); such an address sets them.
addEventListener("DOMContentLoaded", () => {
  const boxes = document.querySelectorAll(".explorer");
  if (!boxes.length) return;
  // The colours of lab.plot, then its INK and MUTED, and what stands for each on a dark page.
  const COLOURS = {
    light: ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#777777"],
    dark: ["#56B4E9", "#F08A4B", "#2FC39B", "#E3A3C8", "#E69F00", "#8FB8FF", "#E8ECEF", "#A9B3BC"],
  };
  const palette = () => COLOURS[document.documentElement.dataset.theme] ?? COLOURS.light;
  const NARROW = 560; // pixels of the box below which panels stand one above the other
  const PANEL = 280; // height of each of them
  const scripts = {};
  const load = (url) =>
    (scripts[url] ??= new Promise((resolve, reject) => {
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
        font: { color: colour("text-base"), family: style.getPropertyValue("--book-ui"), size: Number(style.getPropertyValue("--explorer-font")) || 14 },
        colorway: palette().slice(0, 6),
        xaxis: { ...axis, title: { standoff: 6 } }, // a title stands at its numbers, off the slider and the panel below
        yaxis: axis,
        margin: { t: 24, r: 16, b: 48, l: 56 },
        hoverlabel: { bgcolor: colour("surface"), font: { color: colour("text-base") } },
      },
    };
  }

  // A colour of the light page in the colours of this one; any other colour stays.
  const themed = (colour) => palette()[COLOURS.light.indexOf(colour)] ?? colour;

  // What to change where panels that stand side by side get too little room: one column, titles and legend with it.
  function stacked(layout) {
    const names = Object.keys(layout).filter((name) => /^xaxis\d*$/.test(name)).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const count = names.length;
    if (names.every((name) => (layout[name].domain ?? [0, 1]).join() === "0,1")) return null; // they do so already
    const gap = 0.38 / count; // room for the axis title of one and the title of the next
    const height = (1 - (count - 1) * gap) / count;
    const change = {};
    names.forEach((name, index) => {
      const top = 1 - index * (height + gap);
      const [left, right] = layout[name].domain;
      change[`${name}.domain`] = [0, 1];
      change[`${name.replace("x", "y")}.domain`] = [Math.max(0, top - height), top];
      const above = layout[name.replace("x", "y")].domain?.[1] ?? 1; // where a title of this panel stands
      (layout.annotations ?? []).forEach(({ xref, x, y }, number) => {
        if (xref === "paper" && left <= x && x <= right && Math.abs(y - above) < 0.02) Object.assign(change, { [`annotations[${number}].x`]: 0.5, [`annotations[${number}].y`]: top });
      });
    });
    const { y } = layout.legend ?? {};
    if (y > 1) change["legend.y"] = 1 + (y - 1) / count;
    return { change, height: count * PANEL };
  }

  // The same keys with what the figure said at first.
  const original = (change, layout) =>
    Object.fromEntries(Object.keys(change).map((key) => [key, key.split(/[.[\]]+/).reduce((part, name) => part?.[name], layout) ?? [0, 1]])); // a domain unsaid is all

  // The places of sliders that the address names, by explorer.
  const named = () => new URLSearchParams(location.hash.startsWith("#explorer-") ? location.hash.slice(1) : "");
  function keep(name, state) {
    const places = named();
    places.set(name, state.join(","));
    history.replaceState(null, "", `#${places.toString().replaceAll("%2C", ",")}`);
  }

  // One control per Plotly slider. Several sliders together name one frame: the steps' values joined by "|".
  // Where there is `compute`, it makes the frame from the values and what the figure says is given.
  function sliders(plot, specs, compute, given, changed) {
    const state = specs.map((spec) => spec.active ?? 0);
    const instant = { mode: "immediate", frame: { duration: 0, redraw: true }, transition: { duration: 0 } };
    const valueOf = (step) => String(step.value ?? step.label ?? "");
    const move = (index) => {
      if (compute) return Plotly.animate(plot, compute(specs.map((s, i) => Number(valueOf(s.steps[state[i]]))), given), instant);
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
        changed(state);
      });
      say();
      label.append(words, range);
      return label;
    });
  }

  // A button that moves a slider from step to step, each some milliseconds, to its end or until it is pressed again.
  function player(range, wait) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "explorer-play", textContent: "Play" });
    let timer;
    const go = (step) => {
      range.value = step;
      range.dispatchEvent(new Event("input"));
    };
    const stop = () => {
      timer = clearInterval(timer);
      button.textContent = "Play";
    };
    button.addEventListener("click", () => {
      if (timer) return stop();
      if (range.value === range.max) go(range.min);
      button.textContent = "Pause";
      timer = setInterval(() => (range.value === range.max ? stop() : go(Number(range.value) + 1)), wait);
    });
    return button;
  }

  async function show(box) {
    await Promise.all([load(box.dataset.plotly), load(box.dataset.figure)]);
    const { compute, ...spec } = window.EXPLORERS[box.dataset.figure.split("/").pop()];
    const { data, layout, frames } = structuredClone(spec);
    const { sliders: specs = [], updatemenus, height, width, ...rest } = layout;
    const plot = Object.assign(document.createElement("div"), { className: "explorer-plot" });
    box.querySelector(".explorer-fallback").hidden = true;
    box.append(plot);
    const config = { responsive: true, displaylogo: false, showSendToCloud: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
    const parts = ["line", "marker"].flatMap((part) => data.map((trace, index) => ({ part, index, colour: trace[part]?.color })).filter(({ colour }) => typeof colour === "string"));
    for (const { part, index, colour } of parts) data[index][part].color = themed(colour);
    const first = structuredClone(rest);
    await Plotly.newPlot(plot, data, { ...rest, template: template(), autosize: true }, config);
    if (frames.length) await Plotly.addFrames(plot, frames);
    const controls = sliders(plot, specs, compute, rest.meta?.given, (state) => keep(box.id, state));
    const ranges = controls.map((control) => control.querySelector("input"));
    const set = () =>
      (named().get(box.id) ?? "").split(",").forEach((place, index) => {
        if (!ranges[index] || !/^\d+$/.test(place) || ranges[index].value === place) return;
        ranges[index].value = place;
        ranges[index].dispatchEvent(new Event("input"));
      });
    set();
    addEventListener("hashchange", set);
    if (rest.meta?.play) controls[0].append(player(ranges[0], rest.meta.play));
    box.append(...controls);

    const column = stacked(first);
    let narrow = false;
    const fit = async () => {
      if (!column || narrow === (narrow = box.clientWidth < NARROW)) return;
      box.style.setProperty("--explorer-height", `${narrow ? column.height : height ?? 420}px`);
      await Plotly.relayout(plot, narrow ? column.change : original(column.change, first));
      await Plotly.Plots.resize(plot);
    };
    await fit();
    new ResizeObserver(fit).observe(box);
    box.dataset.ready = "true";
    new MutationObserver(async () => {
      await Plotly.relayout(plot, { template: template() });
      for (const { part, index, colour } of parts) await Plotly.restyle(plot, { [`${part}.color`]: themed(colour) }, [index]);
    }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
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
  const [first] = named().keys();
  if (first) document.getElementById(first)?.scrollIntoView({ block: "center" });
});
