// Try it: the last lines of the chapter's reference program, changed and run in the page. Python (Pyodide, in a worker) and the editor
// come from this site's own scripts, the one when Run is pressed, the other when somebody clicks into the program; so it
// works from a folder, too. Nothing goes over the network.
addEventListener("DOMContentLoaded", () => {
  const LIMIT = 60; // seconds that a run may take
  const SVG = "http://www.w3.org/2000/svg";
  const loaded = {};
  const load = (url) =>
    (loaded[url] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      Object.assign(script, { src: url, onload: resolve, onerror: () => reject(new Error("missing")) });
      document.head.append(script);
    }));

  const unpack = async (name) => {
    const bytes = Uint8Array.from(atob(PYTHON[name]), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  };
  const text = async (name) => new TextDecoder().decode(await unpack(name));

  // Runs in the worker: the files that Pyodide would fetch are handed to it, then programs, one after the other.
  function work() {
    const RUN = `
import io, json, traceback
from contextlib import redirect_stdout
def run(mechanism, program):
    printed, shown, error = io.StringIO(), [], None
    def plot(x, curves, label=""):
        shown.append({"x": list(x), "curves": {name: list(y) for name, y in curves.items()}, "label": label})
    names = {"__name__": "__main__", "plot": plot}
    with redirect_stdout(printed):
        try:
            exec(compile(mechanism, "mechanism", "exec"), names)
            exec(compile(program, "program", "exec"), names)
        except BaseException as problem:
            lines = traceback.format_exception(problem)
            error = lines[0] + "".join(lines[2:])  # without the line that runs the program
    result = {"text": printed.getvalue(), "error": error, "curves": shown, "result": names.get("result")}
    try:
        return json.dumps(result)
    except (TypeError, ValueError):
        return json.dumps({**result, "curves": [], "result": None})
run`;
    let run = null;
    onmessage = async ({ data }) => {
      try {
        if (data.parts) {
          const types = { "pyodide.asm.wasm": "application/wasm", "python_stdlib.zip": "application/zip" };
          globalThis.fetch = async (url) => {
            const name = String(url?.url ?? url).split("/").pop();
            return new Response(data.parts[name], { headers: { "Content-Type": types[name] } });
          };
          const python = await loadPyodide({
            indexURL: "https://book.invalid/",
            createPyodideModule: _createPyodideModule,
            lockFileContents: JSON.parse(data.lock),
          });
          run = python.runPython(RUN);
          postMessage({ ready: true });
        } else postMessage(JSON.parse(run(data.mechanism, data.program)));
      } catch (error) {
        postMessage({ error: String(error), text: "", curves: [] });
      }
    };
  }

  let worker = null;
  const answer = (message) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
      worker.postMessage(message);
    });
  async function start(url) {
    if (worker) return;
    await load(url);
    const source = [await text("worker"), `(${work})();`];
    worker = new Worker(URL.createObjectURL(new Blob(source, { type: "text/javascript" })));
    const parts = {};
    for (const name of ["pyodide.asm.wasm", "python_stdlib.zip"]) parts[name] = await unpack(name);
    const begun = await answer({ parts, lock: await text("pyodide-lock.json") });
    if (!begun.ready) throw new Error(begun.error);
  }
  const stop = () => {
    worker?.terminate();
    worker = null;
  };

  const element = (name, attributes, ...children) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const seconds = (time) => `${(time / 1000).toFixed(2)} s`;
  const short = (value) => String(+(+value.toFixed(12)).toPrecision(3)); // rounding is no number
  function draw(wide, { x, curves, label }) {
    const [high, left, bottom, top] = [250, 54, 44, 14];
    const all = Object.values(curves).flat().filter(Number.isFinite);
    const [a, b] = [Math.min(...x), Math.max(...x)];
    let [low, up] = [Math.min(...all), Math.max(...all)];
    if (!(up > low)) [low, up] = [low - 0.5, low + 0.5];
    const across = (v) => left + ((v - a) / (b - a || 1)) * (wide - left - 12);
    const upward = (v) => high - bottom - ((v - low) / (up - low)) * (high - bottom - top);
    const picture = element("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${Object.keys(curves).join(", ")}; ${label}` });
    picture.append(element("path", { class: "try-axis", d: `M${left} ${top}V${high - bottom}H${wide - 12}` }));
    for (const v of [low, (low + up) / 2, up]) picture.append(element("text", { x: left - 6, y: upward(v) + 4, "text-anchor": "end" }, short(v)));
    for (const v of [a, (a + b) / 2, b]) picture.append(element("text", { x: across(v), y: high - bottom + 16, "text-anchor": "middle" }, short(v)));
    picture.append(element("text", { x: (left + wide) / 2, y: high - 8, "text-anchor": "middle" }, label));
    const names = document.createElement("p");
    names.className = "try-names";
    Object.entries(curves).forEach(([name, y], number) => {
      const points = y.map((v, k) => (Number.isFinite(v) ? `${across(x[k]).toFixed(1)},${upward(v).toFixed(1)}` : "")).join(" ");
      picture.append(element("polyline", { class: `try-curve-${number % 4}`, points }));
      names.append(Object.assign(document.createElement("span"), { className: `try-curve-${number % 4}`, textContent: name }));
    });
    const box = document.createElement("figure");
    box.append(names, picture);
    return box;
  }

  document.querySelectorAll(".try").forEach((box) => {
    const find = (name) => box.querySelector(`.try-${name}`);
    const [program, mechanism, run, reset, state, output, curves] = ["program", "file", "run", "reset", "state", "output", "curves"].map(find);
    const built = { ...JSON.parse(find("recorded").textContent), text: output.textContent };
    const editors = new Map();
    const value = (area) => editors.get(area)?.getValue() ?? area.value;
    const fill = (area, text) => (editors.has(area) ? editors.get(area).setValue(text) : (area.value = text));
    const recorded = () => show(built, "Printed when the book was built:");
    function show(done, words) {
      state.textContent = words;
      output.textContent = [done.text?.trimEnd(), done.error].filter(Boolean).join("\n");
      output.classList.toggle("try-error", Boolean(done.error));
      const wide = Math.min(640, curves.clientWidth || 640);
      curves.replaceChildren(...(done.curves ?? []).map((one) => draw(wide, one)));
      box.dataset.result = JSON.stringify(done.result ?? null);
    }
    const edit = (area) =>
      load(box.dataset.editor)
        .then(() => {
          if (editors.has(area)) return;
          const editor = CodeMirror.fromTextArea(area, { mode: "python", indentUnit: 4, lineWrapping: true, viewportMargin: area === program ? Infinity : 10 });
          editor.getInputField().setAttribute("aria-label", area.getAttribute("aria-label"));
          editor.setOption("extraKeys", { "Ctrl-Enter": () => run.click(), "Cmd-Enter": () => run.click(), Tab: false, "Shift-Tab": false });
          editors.set(area, editor);
          editor.focus();
        })
        .catch(() => {}); // the plain field does, too
    for (const area of [program, mechanism]) area.addEventListener("focus", () => edit(area), { once: true });

    run.addEventListener("click", async () => {
      if (run.textContent === "Stop") {
        stop();
        run.textContent = "Run";
        state.textContent = "Stopped.";
        return;
      }
      run.textContent = "Stop";
      const pressed = performance.now();
      state.textContent = worker ? "Running…" : "Loading Python, a few seconds…";
      const patience = setTimeout(() => (run.click(), (state.textContent = `Stopped after ${LIMIT} s.`)), 1000 * LIMIT);
      try {
        await start(box.dataset.python);
        state.textContent = "Running…";
        const began = performance.now();
        const done = await answer({ program: value(program), mechanism: value(mechanism) });
        const ran = seconds(performance.now() - began);
        const loaded = began - pressed > 100 ? `, after ${seconds(began - pressed)} to load Python` : "";
        show(done, done.error ? "It stopped with an error:" : `Ran here, in ${ran}${loaded}:`);
      } catch (error) {
        stop();
        state.textContent = error.message === "missing" ? "This copy of the book has no Python in it; the program runs on the site." : `Python did not start: ${error.message}`;
      }
      clearTimeout(patience);
      run.textContent = "Run";
    });
    reset.addEventListener("click", () => {
      for (const area of [program, mechanism]) fill(area, area.defaultValue);
      recorded();
    });
    recorded();
    run.disabled = reset.disabled = false;
  });
});
