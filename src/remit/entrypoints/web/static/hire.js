// Choosing another adapter shows its settings at once; what was typed comes along.
for (const choice of document.querySelectorAll("select[data-submit]")) {
  const button = document.getElementById(choice.dataset.submit);
  button.hidden = true;
  choice.addEventListener("change", () => choice.form.requestSubmit(button));
}
// A permission that is picked becomes a line of the field below.
const adder = document.querySelector("[data-add-right]");
if (adder) {
  const [what, level, mode] = adder.querySelectorAll("input, select");
  adder.hidden = false;
  adder.querySelector("button").addEventListener("click", () => {
    const lines = document.getElementById("f-grants");
    if (!what.value.trim()) { what.focus(); return; }
    lines.value += `${lines.value && !lines.value.endsWith("\n") ? "\n" : ""}${what.value.trim()} ${level.value}${mode.value === "ask" ? " ask" : ""}\n`;
    lines.dataset.dirty = "1";
    what.value = "";
    what.focus();
  });
}
