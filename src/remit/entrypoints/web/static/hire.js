// Choosing another adapter shows its settings at once; what was typed comes along.
for (const choice of document.querySelectorAll("select[data-submit]")) {
  const button = document.getElementById(choice.dataset.submit);
  button.hidden = true;
  choice.addEventListener("change", () => choice.form.requestSubmit(button));
}
