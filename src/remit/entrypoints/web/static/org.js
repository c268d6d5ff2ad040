// Folds and searches the organisation. The lists are the server's; this adds the buttons, remembers
// what was folded, and keeps both when something changes.
const MANY = 200;
const field = document.getElementById("seek");
let tree = document.querySelector("[data-tree]");
const store = `remit-org-${tree.dataset.company}`;
let chosen = remembered(); // id → whether somebody folded it
let seen = new Map(); // id → its line as the server wrote it

function remembered() {
  try { return new Map(JSON.parse(localStorage.getItem(store) ?? "[]")); } catch { return new Map(); }
}
function remember() {
  try { localStorage.setItem(store, JSON.stringify([...chosen].slice(-5000))); } catch { /* not kept then */ }
}

// Times are drawn anew in the page; that is no change.
const essence = (row) => row.innerHTML.replace(/<relative-time datetime="([^"]*)"[^>]*>[^<]*/g, "$1");
const rows = () => tree.querySelectorAll("li > div");
const movable = (row) => tree.dataset.change && !row.hasAttribute("data-gone") && (!tree.dataset.scope || row.closest("li")?.matches("[data-mine], [data-mine] li"));
const id = (row) => row.querySelector("a").getAttribute("href").slice(8);
const depth = (row) => { let found = -1; for (let at = row; at !== tree; at = at.parentNode) found += at.tagName === "UL"; return found; };

function fold(row, folded) {
  const button = row.firstElementChild;
  const list = row.nextElementSibling;
  if (!list) return;
  list.hidden = folded;
  button.setAttribute("aria-expanded", String(!folded));
}

function dress(row) {
  const name = row.querySelector("a").textContent;
  const lead = document.createElement(row.nextElementSibling ? "button" : "span");
  lead.className = row.nextElementSibling ? "fold" : "leaf";
  if (row.nextElementSibling) {
    lead.type = "button";
    lead.setAttribute("aria-label", `Reports of ${name}`);
    lead.setAttribute("aria-expanded", "true");
  }
  row.prepend(lead);
  const { change } = tree.dataset;
  if (movable(row)) {
    row.draggable = true;
    const link = document.createElement("a");
    link.className = "change";
    link.href = change + (change.includes("?") ? "&" : "?") + `agent=${id(row)}`;
    link.textContent = "Move…";
    link.setAttribute("aria-label", `Move or change ${name}`);
    row.querySelector(".who").append(" ", link);
  }
}

function unfolded(row, many) { return chosen.has(id(row)) ? !chosen.get(id(row)) : !(many && depth(row) > 0); }

function enhance() {
  const all = [...rows()];
  seen = new Map(all.map((row) => [id(row), essence(row)]));
  const { scope } = tree.dataset;
  if (scope) all.find((row) => id(row) === scope)?.parentNode.setAttribute("data-mine", "");
  const asked = new URLSearchParams(location.search);
  const searching = asked.get("q") || asked.get("status");
  for (const row of all) {
    dress(row);
    fold(row, !searching && !unfolded(row, all.length > MANY));
  }
  document.querySelector("[data-folding]").hidden = !tree.querySelector(".fold");
  seek();
}

function seek() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!tree.hasAttribute("data-all")) return;
  let number = 0;
  const many = seen.size > MANY;
  for (const row of [...rows()].reverse()) { // reports before their bosses
    const item = row.parentNode;
    const said = `${row.querySelector("a").textContent} ${row.querySelector("i").textContent}`.toLowerCase();
    const fits = words.every((word) => said.includes(word));
    const below = words.length > 0 && item.querySelector(":scope > ul > li:not([hidden])") !== null;
    number += fits;
    item.hidden = !fits && !below;
    if (words.length) { item.classList.toggle("dim", !fits); fold(row, !below); } else if (tree.searched) { item.classList.remove("dim"); fold(row, !unfolded(row, many)); }
  }
  if (words.length || tree.searched) document.querySelector("[data-fits]").textContent = `${number} ${number === 1 ? "agent" : "agents"}${words.length ? ` of ${seen.size}` : ""}`;
  tree.searched = words.length > 0;
}

const shape = (of) => [...of.querySelectorAll("li > div")].map((row) => `${id(row)}<${row.parentNode.parentNode.previousElementSibling ? id(row.parentNode.parentNode.previousElementSibling) : ""}`).join();

function freshen(next) {
  const held = document.activeElement;
  const at = tree.contains(held) ? [id(held.closest("li > div")), held.className] : null;
  if (shape(next) !== shape(tree)) {
    const put = document.importNode(next, true);
    tree.replaceWith(put);
    tree = put;
    enhance();
  } else {
    const theirs = next.querySelectorAll("li > div");
    for (const [place, row] of rows().entries()) {
      const html = essence(theirs[place]);
      if (seen.get(id(row)) === html) continue;
      const folded = row.firstElementChild.getAttribute("aria-expanded") === "false";
      row.replaceChildren(...document.importNode(theirs[place], true).childNodes);
      seen.set(id(row), html);
      dress(row);
      fold(row, folded);
    }
    if (tree.searched) seek();
  }
  if (at && !document.contains(held)) {
    const row = [...rows()].find((one) => id(one) === at[0]);
    (at[1] ? row?.querySelector(`.${CSS.escape(at[1])}`) : row?.querySelector("a"))?.focus();
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".fold, [data-fold]");
  if (!button) return;
  const one = button.matches(".fold");
  for (const row of one ? [button.parentNode] : rows()) {
    if (!row.nextElementSibling) continue;
    const folded = one ? button.getAttribute("aria-expanded") === "true" : button.dataset.fold === "all";
    fold(row, folded);
    chosen.delete(id(row));
    chosen.set(id(row), folded);
  }
  remember();
});
document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.(".fold") || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
  if ((event.target.getAttribute("aria-expanded") === "true") === (event.key === "ArrowLeft")) event.target.click();
  event.preventDefault();
});

// An agent that is dragged onto another is to report to it: the server shows what that changes.
let dragged = null;
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-tree] li > div") ?? null;
  event.dataTransfer?.setData("text/plain", dragged ? id(dragged) : "");
});
document.addEventListener("dragover", (event) => {
  const over = event.target.closest?.("[data-tree] li > div");
  for (const row of tree.querySelectorAll(".over")) row.classList.toggle("over", row === over);
  if (!dragged || !over || dragged.parentNode.contains(over) || over.hasAttribute("data-gone")) return;
  event.preventDefault();
  over.classList.add("over");
});
document.addEventListener("drop", (event) => {
  const over = event.target.closest?.("[data-tree] li > div");
  if (!dragged || !over || dragged.parentNode.contains(over)) return;
  event.preventDefault();
  const form = document.createElement("form");
  form.method = "post";
  form.action = tree.dataset.preview;
  form.setAttribute("data-plain", "");
  for (const [name, value] of Object.entries({ op: "move", agent: id(dragged), to: id(over) })) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    form.append(field);
  }
  document.body.append(form);
  form.submit();
});
document.addEventListener("dragend", () => { dragged = null; for (const row of tree.querySelectorAll(".over")) row.classList.remove("over"); });

field.addEventListener("input", seek);
document.body.addEventListener("patched", ({ detail }) => {
  const next = detail?.querySelector("[data-tree]");
  if (next) freshen(next);
});
enhance();
