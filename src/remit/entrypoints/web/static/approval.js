// Nobody decides about a revision that they have not seen: when another one comes while the page is
// open, the page shows it, and asks to look before anything can be decided.
const form = document.querySelector("form[data-seen]");

function look() {
  const shown = form.querySelector("[data-part=decide]");
  const seen = form.elements.namedItem("revision");
  const note = form.querySelector("[data-revised]");
  const revised = shown.dataset.revision !== seen.value;
  note.hidden = !revised;
  note.querySelector("span").textContent = shown.dataset.revision;
  for (const button of shown.querySelectorAll("button")) button.disabled = revised;
}

if (form) {
  // The confirmation is not in the way of the answer.
  form.addEventListener("submit", () => document.getElementById("reject-it")?.close());
  form.querySelector("[data-revised] button").addEventListener("click", () => {
    form.elements.namedItem("revision").value = form.querySelector("[data-part=decide]").dataset.revision;
    look();
  });
  document.body.addEventListener("patched", look);
}
