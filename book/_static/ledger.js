// The ledger's filters. State lives in the address (#paper=…&source=…&verdict=a,b&q=…); #ID opens the row of one claim.
addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".ledger-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("tr.claim")];
  const selects = [form.paper, form.source];
  const verdicts = [...form.querySelectorAll("input[name=verdict]")];
  const count = form.querySelector("output");

  const chosen = () => verdicts.filter((box) => box.checked).map((box) => box.value);

  function apply() {
    const wanted = chosen();
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits =
        selects.every((select) => !select.value || row.dataset[select.name] === select.value) &&
        (!wanted.length || wanted.includes(row.dataset.verdict)) &&
        words.every((word) => row.dataset.text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  }

  function write() {
    const state = new URLSearchParams();
    for (const { name, value } of selects) if (value) state.set(name, value);
    if (chosen().length) state.set("verdict", chosen().join(","));
    if (form.q.value) state.set("q", form.q.value);
    const hash = state.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function read() {
    const hash = decodeURIComponent(location.hash.slice(1));
    const target = hash.includes("=") ? null : document.getElementById(hash);
    const state = new URLSearchParams(hash.includes("=") ? location.hash.slice(1) : "");
    for (const select of selects) {
      select.value = state.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    form.q.value = state.get("q") ?? "";
    const wanted = (state.get("verdict") ?? "").split(",");
    for (const box of verdicts) box.checked = wanted.includes(box.value);
    apply();
    if (target?.matches("tr.claim")) {
      target.querySelector("details").open = true;
      target.scrollIntoView({ block: "center" });
    }
  }

  form.addEventListener("input", () => (apply(), write()));
  form.addEventListener("reset", () => setTimeout(() => (apply(), write())));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
});
