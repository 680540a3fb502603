// The button that copies the address of a claim.
addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".copy-link")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.href);
      button.textContent = "Copied";
    });
  }
});
