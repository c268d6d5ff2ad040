// Keys: Ctrl-K and / search and act, g and a letter go somewhere, j and k walk the rows, ? says so.
//
// Results are rendered by the page /search, which works without scripts as well.

const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const list = dialog.querySelector("[data-results]");
const keys = document.getElementById("keys");
let chosen = 0;
let asked = 0;
let waiting = null;

const rows = () => [...list.querySelectorAll("li")];

function choose(number) {
  const all = rows();
  chosen = all.length ? (number + all.length) % all.length : 0;
  all.forEach((row, index) => row.setAttribute("aria-selected", index === chosen));
  all[chosen]?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", all[chosen]?.id ?? "");
}

async function search() {
  const mine = ++asked;
  const address = new URL("/search", location.origin);
  address.searchParams.set("q", field.value);
  const company = new URL(location.href).searchParams.get("company");
  if (company) address.searchParams.set("company", company);
  const answer = await fetch(address, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok || mine !== asked) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = [...fresh.querySelectorAll("[data-found] > li")].map((row, index) => {
    const put = document.importNode(row, true);
    put.id = `found-${index}`;
    put.setAttribute("role", "option");
    const act = put.querySelector("a, button");
    const name = document.createElement("strong");
    name.textContent = act.textContent;
    if (act.href) put.dataset.href = act.href;
    act.replaceWith(name);
    return put;
  });
  list.replaceChildren(...found);
  dialog.querySelector("[data-none]").hidden = found.length > 0;
  choose(0);
}

function follow(row) {
  if (!row) return;
  dialog.close();
  if (row.dataset.href) location.assign(row.dataset.href);
  else row.querySelector("form").submit();
}

function open() {
  if (!dialog.open) dialog.showModal();
  field.select();
  search();
}

field.addEventListener("input", (event) => {
  event.stopPropagation(); // nothing that is typed here is lost by an update
  clearTimeout(waiting);
  waiting = setTimeout(search, 120);
});
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    follow(rows()[chosen]);
  }
});
list.addEventListener("click", (event) => follow(event.target.closest("li")));
for (const opener of document.querySelectorAll("[data-palette]")) {
  opener.addEventListener("click", (event) => { event.preventDefault(); open(); });
}

// ── keys ────────────────────────────────────────────────────────────────────────────────────────

const places = Object.fromEntries([...document.querySelectorAll("[data-key]")].map((one) => [one.dataset.key, one]));
let going = false;

function walk(step) {
  const all = [...document.querySelectorAll("main .inbox > li, main .rows > li, main tbody tr")]
    .map((row) => row.querySelector("a")).filter(Boolean);
  const at = all.findIndex((link) => link.closest("li, tr")?.contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, at + step))]?.focus();
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); open(); return; }
  const busy = event.target.closest("input, textarea, select, [contenteditable], dialog[open]");
  if (busy || event.ctrlKey || event.metaKey || event.altKey) { going = false; return; }
  if (going) {
    going = false;
    const place = places[event.key];
    if (place) { event.preventDefault(); place.click(); }
  } else if (event.key === "g") {
    going = true;
    setTimeout(() => { going = false; }, 1500);
  } else if (event.key === "/") { event.preventDefault(); open(); }
  else if (event.key === "?") { event.preventDefault(); keys.showModal(); }
  else if (event.key === "j") walk(1);
  else if (event.key === "k") walk(-1);
});
