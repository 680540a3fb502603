// The filters of a table of claims or of statements, and of the evidence of a chapter. On the page of a whole table their state lives in the address
// (#paper=…&source=…&verdict=a,b&q=…). #ID leads to the row of one claim. A row that a filter
// shows brings the rows that amend it.
addEventListener("DOMContentLoaded", () => {
  const ledger = document.querySelector(".ledger, .theorems");
  if (!ledger) return;
  const form = ledger.querySelector(".ledger-filters");
  const own = ledger.matches(".ledger-page, .theorems"); // all rows are filtered; in a chapter only those beside the form
  const rows = [...(own ? ledger : form?.parentElement ?? ledger).querySelectorAll("[data-text]")];

  function open(target) {
    if (target?.matches("tr.claim")) target.scrollIntoView({ block: "center" });
  }
  const named = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));

  if (!form) {
    addEventListener("hashchange", () => open(named()));
    return open(named());
  }
  const selects = [...form.querySelectorAll("select")];
  const verdicts = [...form.querySelectorAll("input[name=verdict]")];
  const count = form.querySelector("output");
  const chosen = () => verdicts.filter((box) => box.checked).map((box) => box.value);

  function apply() {
    const wanted = chosen();
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const others = rows.filter(
      (row) =>
        selects.every((select) => !select.value || row.dataset[select.name] === select.value) &&
        words.every((word) => row.dataset.text.includes(word)),
    );
    const matched = others.filter((row) => !wanted.length || wanted.includes(row.dataset.verdict));
    const shown = new Set(matched);
    const shows = (claim) => [...shown].some((row) => row.dataset.claim === claim);
    for (const row of rows) if (row.dataset.amends && shows(row.dataset.amends)) shown.add(row); // they follow in order
    for (const row of rows) row.hidden = !shown.has(row);
    for (const body of ledger.querySelectorAll("tbody:has(.claims-chapter)")) body.hidden = !body.querySelector("tr[data-text]:not([hidden])");
    for (const box of verdicts) {
      const number = others.filter((row) => row.dataset.verdict === box.value).length;
      box.closest(".chip").classList.toggle("chip-none", !number);
      box.closest(".chip").querySelector(".chip-count").textContent = number;
    }
    const more = shown.size - matched.length;
    count.textContent = `${matched.length} of ${rows.length} ${form.dataset.rows}${more ? `, and ${more} that ${more > 1 ? "amend" : "amends"} them` : ""}`;
  }

  function write() {
    if (!own) return;
    const state = new URLSearchParams();
    for (const { name, value } of selects) if (value) state.set(name, value);
    if (chosen().length) state.set("verdict", chosen().join(","));
    if (form.q.value) state.set("q", form.q.value);
    const hash = state.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function read() {
    const state = new URLSearchParams(own && location.hash.includes("=") ? location.hash.slice(1) : "");
    for (const select of selects) {
      select.value = state.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    form.q.value = state.get("q") ?? "";
    const wanted = (state.get("verdict") ?? "").split(",");
    for (const box of verdicts) box.checked = wanted.includes(box.value);
    apply();
    open(named());
  }

  form.addEventListener("input", () => (apply(), write()));
  form.addEventListener("reset", () => setTimeout(() => (apply(), write())));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
});
