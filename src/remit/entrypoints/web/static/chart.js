// An agent that is dragged onto another in the chart is to report to it: the server shows what
// that changes. Without this script, the form below the chart does the same.

const frame = document.querySelector("[data-preview]");
const box = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-agent]") ?? null;
let held = null;

function mark(over) {
  for (const one of frame.querySelectorAll(".over")) one.classList.remove("over");
  if (over && over !== held?.box) over.classList.add("over");
}

frame.addEventListener("pointerdown", (event) => {
  const at = event.target.closest("[data-agent]");
  if (event.button === 0 && event.pointerType !== "touch" && at) held = { box: at, x: event.clientX, y: event.clientY, moved: false };
});
addEventListener("pointermove", (event) => {
  if (!held) return;
  held.moved ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) >= 5;
  if (!held.moved) return;
  held.box.classList.add("dragged");
  mark(box(event));
});
addEventListener("pointerup", (event) => {
  const from = held;
  const onto = box(event);
  mark(null);
  held = null;
  from?.box.classList.remove("dragged");
  if (!from?.moved) return;
  // A click that ends a drag follows no link; there is none if it ends elsewhere.
  const still = (click) => click.preventDefault();
  addEventListener("click", still, { once: true, capture: true });
  setTimeout(() => removeEventListener("click", still, { capture: true }));
  if (!onto || onto === from.box) return;
  const form = Object.assign(document.createElement("form"), { method: "post", action: frame.dataset.preview });
  for (const [name, value] of Object.entries({ op: "move", agent: from.box.dataset.agent, to: onto.dataset.agent })) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }
  document.body.append(form);
  form.submit();
});
addEventListener("keydown", (event) => { if (event.key === "Escape") { mark(null); held?.box.classList.remove("dragged"); held = null; } });
