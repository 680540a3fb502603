// What a reader wants to see: a switch in the head of the page hides code, checks and proofs. The choice stands in the
// address (?hide=code,proofs) and is kept on the machine; the address wins. Print follows it. A link to something hidden
// shows it again.
(() => {
  const MODES = {
    code: ["code", ".cell_input, .setup-fold"],
    checks: ["checks", ".checked, .cell:has(.checked)"],
    proofs: ["proofs", ".proof-fold"],
  };
  const root = document.documentElement;
  const kept = {
    get: () => { try { return localStorage.getItem("hide"); } catch { return null; } }, // storage may be forbidden
    set: (value) => { try { localStorage.setItem("hide", value); } catch {} },
  };
  const hidden = () => Object.keys(MODES).filter((mode) => root.classList.contains(`hide-${mode}`));
  const apply = (modes) => {
    for (const mode of Object.keys(MODES)) root.classList.toggle(`hide-${mode}`, modes.includes(mode));
  };
  const asked = new URLSearchParams(location.search).get("hide");
  apply((asked ?? kept.get() ?? "").split(","));

  addEventListener("DOMContentLoaded", () => {
    const present = Object.entries(MODES).filter(([, [, css]]) => document.querySelector(`article :is(${css})`));
    const buttons = document.querySelector(".article-header-buttons");
    if (!present.length || !buttons) return;
    const fold = document.createElement("details");
    fold.className = "modes";
    fold.innerHTML = "<summary>Show</summary><fieldset><legend>On every page</legend></fieldset>";
    const boxes = present.map(([mode, [words]]) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: mode });
      label.append(box, ` ${words}`);
      fold.querySelector("fieldset").append(label);
      return box;
    });
    const show = () => {
      for (const box of boxes) box.checked = !root.classList.contains(`hide-${box.name}`);
    };
    fold.addEventListener("input", ({ target }) => {
      root.classList.toggle(`hide-${target.name}`, !target.checked);
      kept.set(hidden().join(","));
      const address = new URL(location.href);
      address.searchParams.delete("hide");
      const query = [address.searchParams.toString(), hidden().length ? `hide=${hidden().join(",")}` : ""].filter(Boolean).join("&");
      history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
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
      const found = hidden().filter((mode) => target?.closest(MODES[mode][1]));
      if (!found.length) return;
      apply(hidden().filter((mode) => !found.includes(mode)));
      show();
      target.scrollIntoView();
    };
    addEventListener("hashchange", reveal);
    reveal();
  });
})();
