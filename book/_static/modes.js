// What a reader wants to see: code, checks and proofs can be hidden on every page. The choice stands in the address
// (?hide=code,proofs) and is kept on the machine; the address wins. A link to something hidden shows it.
(() => {
  const MODES = {
    code: ["code", ".cell_input, .setup-fold"],
    checks: ["checks", ".checked, .cell:has(.checked)"],
    proofs: ["proofs", ".proof-fold"],
  };
  const root = document.documentElement;
  const kept = {
    get: (name) => { try { return localStorage.getItem(name); } catch { return null; } }, // storage may be forbidden
    set: (name, value) => { try { localStorage.setItem(name, value); } catch {} },
  };
  const asked = new URLSearchParams(location.search);
  const hidden = () => Object.keys(MODES).filter((mode) => root.classList.contains(`hide-${mode}`));
  const hide = (modes) => {
    for (const mode of Object.keys(MODES)) root.classList.toggle(`hide-${mode}`, modes.includes(mode));
  };
  hide((asked.get("hide") ?? kept.get("hide") ?? "").split(","));

  function address(name, value) {
    const parts = new URLSearchParams(location.search);
    value ? parts.set(name, value) : parts.delete(name);
    const query = parts.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
  }

  addEventListener("DOMContentLoaded", () => {
    const present = Object.entries(MODES).filter(([, [, css]]) => document.querySelector(`article :is(${css})`));
    const buttons = document.querySelector(".article-header-buttons");
    if (!present.length || !buttons) return;
    const fold = document.createElement("details");
    fold.className = "modes";
    fold.innerHTML = '<summary>Show</summary><fieldset class="modes-box"><legend>On every page</legend></fieldset>';
    const boxes = present.map(([mode, [words]]) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: mode });
      label.append(box, ` ${words}`);
      fold.querySelector(".modes-box").append(label);
      return box;
    });
    const show = () => {
      for (const box of boxes) box.checked = !root.classList.contains(`hide-${box.name}`);
    };
    fold.addEventListener("input", ({ target }) => {
      root.classList.toggle(`hide-${target.name}`, !target.checked);
      kept.set("hide", hidden().join(","));
      address("hide", hidden().join(","));
    });
    fold.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      fold.open = false;
      fold.querySelector("summary").focus();
    });
    addEventListener("click", ({ target }) => {
      if (!fold.contains(target)) fold.open = false;
    });
    buttons.prepend(fold);
    show();

    const reveal = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      const found = target ? hidden().filter((mode) => target.closest(MODES[mode][1])) : [];
      if (!found.length) return;
      hide(hidden().filter((mode) => !found.includes(mode)));
      show();
      target.scrollIntoView();
    };
    addEventListener("hashchange", reveal);
    reveal();
  });
})();
