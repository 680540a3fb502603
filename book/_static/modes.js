// What a reader wants to see. A chapter has two views: Reader, with code but for the example by hand, settings and
// data lines left out and some sections, but for Try it, behind a button, and All. Behind a button are also parts of the
// derivation without a figure, and experiments, that tell neither a claim in plain words nor one that fails. Besides, code, checks or proofs are
// hidden on every page. The choices stand in the address (?view=all&hide=code,proofs) and are kept on the machine; the
// address wins. Paper shows a chapter whole, but for what is hidden. A link to something that is not shown shows it.
(() => {
  const MODES = {
    code: ["code", ".cell_input, .setup-fold"],
    checks: ["checks", ".checked, .cell:has(.checked)"],
    proofs: ["proofs", ".proof-fold"],
  };
  const VIEWS = { reader: "Reader", all: "All" };
  const FOLDED = "#setup, #mechanism, #what-breaks-it, #reading-the-paper-s-numbers, #what-this-chapter-corrects, #exercises, #going-further, #races";
  const chapter = /\/notebooks\/[^/]+\.html$/.test(location.pathname);
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
  const view = () => (root.classList.contains("view-reader") ? "reader" : "all");
  const turn = (to) => root.classList.toggle("view-reader", to !== "all");
  hide((asked.get("hide") ?? kept.get("hide") ?? "").split(","));
  if (chapter) turn(asked.get("view") ?? kept.get("view"));

  function address(name, value) {
    const parts = new URLSearchParams(location.search);
    value ? parts.set(name, value) : parts.delete(name);
    const query = parts.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
  }

  function aside() {
    const told = [...document.querySelectorAll("tr.claim:is(.claims-first *, :has(.verdict-fails, .verdict-retold))")];
    const names = new Set(told.map(({ id }) => id.replace("claim-", "")));
    const parts = document.querySelectorAll("section[id^=derivation] > section:not(:has(figure, .explorer)), #experiments > section");
    return [...parts].filter((part) => ![...part.querySelectorAll("a[href*='/claims/']")].some(({ hash }) => names.has(hash.slice(1))));
  }

  addEventListener("DOMContentLoaded", () => {
    const present = Object.entries(MODES).filter(([, [, css]]) => document.querySelector(`article :is(${css})`));
    const buttons = document.querySelector(".article-header-buttons");
    if (!present.length || !buttons) return;
    const fold = document.createElement("details");
    fold.className = "modes";
    fold.innerHTML = '<summary>Show</summary><div class="modes-box"></div>';
    const choice = (set, type, name, value, words) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type, name, value });
      label.append(box, ` ${words}`);
      set.append(label);
      return box;
    };
    const set = (words) => {
      const made = document.createElement("fieldset");
      made.append(Object.assign(document.createElement("legend"), { textContent: words }));
      fold.querySelector(".modes-box").append(made);
      return made;
    };
    const views = chapter ? set("Of a chapter") : null;
    const radios = Object.entries(views ? VIEWS : {}).map(([name, words]) => choice(views, "radio", "view", name, words));
    const all = set("On every page");
    const boxes = present.map(([mode, [words]]) => choice(all, "checkbox", mode, "", words));
    const show = () => {
      for (const box of boxes) box.checked = !root.classList.contains(`hide-${box.name}`);
      for (const radio of radios) radio.checked = radio.value === view();
    };
    const choose = (to) => {
      turn(to);
      kept.set("view", to);
      address("view", to);
      show();
    };
    fold.addEventListener("input", ({ target }) => {
      if (target.name === "view") return choose(target.value);
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

    // The reader's view says what it leaves out, and each section that it folds has a button.
    const button = (words, act) => {
      const made = Object.assign(document.createElement("button"), { type: "button", className: "view-more", textContent: words });
      made.addEventListener("click", act);
      return made;
    };
    const sections = chapter ? [...document.querySelectorAll(`article section:is(${FOLDED})`), ...aside()] : [];
    const unfold = (section) => section.classList.replace("view-folded", "view-unfolded");
    for (const section of sections) {
      section.classList.add("view-folded");
      section.querySelector("h2, h3").after(button("Show this section", () => unfold(section)));
    }
    if (chapter) {
      const note = Object.assign(document.createElement("p"), { className: "view-note", textContent: "This is the short view, without code, settings and side results. " });
      note.append(button("Show all", () => choose("all")));
      document.querySelector(".glance")?.after(note);
    }

    const reveal = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!target) return;
      const folded = sections.filter((section) => view() === "reader" && section.contains(target) && section.matches(".view-folded"));
      const found = hidden().filter((mode) => target.closest(MODES[mode][1]));
      folded.forEach(unfold);
      hide(hidden().filter((mode) => !found.includes(mode)));
      const left = view() === "reader" && !target.checkVisibility() && !target.closest("details:not([open])");
      const cell = !target.closest("figure, .ledger, .explorer") && target.closest(".cell"); // a link to it wants its code
      const bare = view() === "reader" && cell && !cell.querySelector(".cell_input")?.checkVisibility();
      if (left || bare) turn("all");
      show();
      if (folded.length || found.length || left || bare) target.scrollIntoView();
    };
    addEventListener("hashchange", reveal);
    reveal();
  });
})();
