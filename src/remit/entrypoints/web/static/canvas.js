// Moves and scales a drawing inside its frame. Without this script the frame scrolls.

const SMALLEST = 0.02;
const LARGEST = 3;

for (const frame of document.querySelectorAll("[data-canvas]")) {
  let scale = 1;

  const drawing = () => frame.querySelector("svg");

  function draw() {
    const svg = drawing();
    if (!svg) return;
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("width", Math.round(width * scale));
    svg.setAttribute("height", Math.round(height * scale));
  }

  // The point x, y of the frame stays where it is.
  function zoom(to, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
    const wanted = Math.min(LARGEST, Math.max(SMALLEST, to));
    const factor = wanted / scale;
    const left = (frame.scrollLeft + x) * factor - x;
    const top = (frame.scrollTop + y) * factor - y;
    scale = wanted;
    draw();
    frame.scrollTo(left, top);
  }

  function fit() {
    const svg = drawing();
    if (!svg) return;
    const { width, height } = svg.viewBox.baseVal;
    zoom(Math.min(1, (frame.clientWidth - 4) / width, (frame.clientHeight - 4) / height));
  }

  const does = { in: () => zoom(scale * 1.25), out: () => zoom(scale / 1.25), fit, full: () => zoom(1) };
  const tools = frame.previousElementSibling;
  if (tools?.matches("[data-canvas-tools]")) {
    tools.hidden = false;
    tools.addEventListener("click", (event) => does[event.target.closest("[data-zoom]")?.dataset.zoom]?.());
  }

  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const what = { "+": "in", "=": "in", "-": "out", "0": "full", f: "fit" }[event.key];
    if (!what) return;
    event.preventDefault();
    does[what]();
  });

  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  // Dragging moves; a click that did not move follows its link.
  let held = null;
  frame.setAttribute("data-drags", "");
  frame.addEventListener("dragstart", (event) => event.preventDefault());
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    if (frame.dataset.preview && event.target.closest("[data-agent]")) return; // chart.js moves these
    held = { x: event.clientX, y: event.clientY, left: frame.scrollLeft, top: frame.scrollTop, moved: false };
  });
  addEventListener("pointermove", (event) => {
    if (!held) return;
    const [right, down] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.moved && Math.hypot(right, down) < 5) return;
    held.moved = true;
    frame.setAttribute("data-dragging", "");
    frame.scrollTo(held.left - right, held.top - down);
  });
  addEventListener("pointerup", () => {
    if (held?.moved) addEventListener("click", (event) => event.preventDefault(), { once: true, capture: true });
    held = null;
    frame.removeAttribute("data-dragging");
  });

  document.body.addEventListener("patched", draw);

  // It opens as large as the frame, as far as one can still read it, with what it is about in view.
  const here = frame.querySelector(".here") ?? frame.querySelector(".box");
  if (here) {
    const { width, height } = drawing().viewBox.baseVal;
    const [wide, high] = [(frame.clientWidth - 4) / width, (frame.clientHeight - 4) / height];
    const least = wide < 0.4 ? 0.5 : Math.min(0.5, wide); // a little smaller, if that shows all of it
    scale = Math.max(least, Math.min(1, wide, high < 0.7 ? 1 : high));
    draw();
    const [box, all] = [here.getBoundingClientRect(), drawing().getBoundingClientRect()];
    const [x, y] = [box.x - all.x + box.width / 2, box.y - all.y + box.height / 2];
    const fits = drawing().clientWidth <= frame.clientWidth;
    frame.scrollTo(fits ? 0 : x - frame.clientWidth / 3, y - frame.clientHeight / 2);
  }
}
