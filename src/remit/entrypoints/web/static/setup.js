// Files are read by the browser: a declared company into the text that is sent, an export as it is.
const file = document.querySelector("input[data-into]");
file?.closest(".field").removeAttribute("hidden");
file?.addEventListener("change", async () => {
  const [chosen] = file.files;
  if (chosen) document.getElementById(file.dataset.into).value = await chosen.text();
});

const form = document.querySelector("form[data-import]");
if (form) {
  form.hidden = false;
  const said = form.querySelector("[data-import-said]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [archive] = form.querySelector("input[type=file]").files;
    const name = form.querySelector("input[name=import-name]").value.trim();
    const button = form.querySelector("button");
    button.disabled = true;
    said.textContent = "Importing…";
    try {
      const answer = await fetch(`/api/companies/import${name ? `?name=${encodeURIComponent(name)}` : ""}`, {
        method: "POST", body: archive, headers: { "Content-Type": "application/x-tar" },
      });
      const found = await answer.json();
      if (answer.ok) location.assign(`/?company=${encodeURIComponent(found.id)}`);
      else said.textContent = `${found.error} ${found.nextStep ?? ""}`;
    } catch {
      said.textContent = "The instance did not answer. Try again.";
    }
    button.disabled = false;
  });
}
