// The button that copies the address of a claim, and the filters of the index of theorems, whose state lives in the
// address (#paper=…&kind=…&q=…).
addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".copy-link")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.href);
      button.textContent = "Copied";
    });
  }

  const index = document.querySelector(".theorems");
  if (!index) return;
  const form = index.querySelector("form");
  const rows = [...index.querySelectorAll("tr.statement")];
  const fields = [form.paper, form.kind, form.q];

  function apply() {
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows)
      row.hidden =
        [form.paper, form.kind].some((field) => field.value && row.dataset[field.name] !== field.value) ||
        !words.every((word) => row.dataset.text.includes(word));
    for (const body of index.querySelectorAll("tbody")) body.hidden = !body.querySelector("tr.statement:not([hidden])");
    form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} statements`;
  }

  function write() {
    const state = new URLSearchParams(fields.filter((field) => field.value).map((field) => [field.name, field.value]));
    history.replaceState(null, "", `${state}` ? `#${state}` : location.pathname + location.search);
  }

  function read() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const field of fields) field.value = state.get(field.name) ?? "";
    apply();
  }

  form.addEventListener("input", () => (apply(), write()));
  form.addEventListener("reset", () => setTimeout(() => (apply(), write())));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  form.hidden = false;
  read();
});
