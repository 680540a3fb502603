// The ledger's filters. State lives in the address (#paper=…&verdict=a,b&q=…); #ID opens the row of one claim.
addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".ledger-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("tr.claim")];
  const verdicts = [...form.querySelectorAll("input[name=verdict]")];
  const count = form.querySelector("output");

  const chosen = () => verdicts.filter((box) => box.checked).map((box) => box.value);

  function apply() {
    const wanted = chosen();
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits =
        (!form.paper.value || row.dataset.paper === form.paper.value) &&
        (!wanted.length || wanted.includes(row.dataset.verdict)) &&
        words.every((word) => row.dataset.text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  }

  function write() {
    const state = new URLSearchParams();
    if (form.paper.value) state.set("paper", form.paper.value);
    if (chosen().length) state.set("verdict", chosen().join(","));
    if (form.q.value) state.set("q", form.q.value);
    const hash = state.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function read() {
    const hash = decodeURIComponent(location.hash.slice(1));
    const target = hash.includes("=") ? null : document.getElementById(hash);
    const state = new URLSearchParams(hash.includes("=") ? location.hash.slice(1) : "");
    form.paper.value = state.get("paper") ?? "";
    if (form.paper.selectedIndex < 0) form.paper.value = "";
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
