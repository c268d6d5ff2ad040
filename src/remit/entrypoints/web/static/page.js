// Keeps a page current without reloading it and without touching what is being typed.
//
// The server renders whole pages. Elements with `data-part` are the pieces that may change: when
// something happened, the page is fetched again and those that differ are exchanged.

const body = document.body;
const state = document.querySelector("[data-live-state]");
let waiting = null;
let busy = false;
let again = false;
let pause = 300;

// A key that a form brings along is new each time and no change.
const essence = (part) => part.outerHTML.replace(/value="web-[^"]*"/g, "");
for (const part of document.querySelectorAll("[data-part]")) part.seen = essence(part);

// ── exchanging parts ────────────────────────────────────────────────────────────────────────────

function typing(part) {
  const active = document.activeElement;
  if (active !== body && part.contains(active) && active.matches("input, textarea, select")) return true;
  for (const field of part.querySelectorAll("input:not([type=hidden]), textarea, select")) {
    if (field.dataset.dirty) return true;
  }
  return part.querySelector("dialog[open], details.menu[open]") !== null;
}

function keep(before, after) {
  // Unfolded details stay unfolded, and the focus stays where it is.
  for (const open of before.querySelectorAll("details[id]")) {
    const same = after.querySelector(`#${CSS.escape(open.id)}`);
    if (same) same.open = open.open;
  }
  const active = document.activeElement;
  return active && before.contains(active) && active.id ? active.id : null;
}

// In a list whose rows have ids, only the row that is being typed into stays as it is.
function around(part, next) {
  const [old, fresh] = [part, next].map((one) => one.querySelector("[data-rows]"));
  if (!old || !fresh) return;
  const wanted = new Set([...fresh.children].map((row) => row.id));
  for (const row of [...old.children]) if (!wanted.has(row.id) && !typing(row)) row.remove();
  let last = null;
  for (const row of fresh.children) {
    const same = [...old.children].find((one) => one.id === row.id);
    if (same && typing(same)) { last = same; continue; }
    const put = document.importNode(row, true);
    if (same && essence(same) !== essence(row)) same.replaceWith(put);
    else if (!same) last ? last.after(put) : old.prepend(put);
    last = same?.isConnected ? same : put;
  }
}

function patch(fresh, { force = false, live = false } = {}) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`);
    if (!next) continue;
    // The message about the last action stays until the next action.
    if (live && part.hasAttribute("data-said") && !next.firstElementChild) continue;
    const seen = essence(next);
    if (seen === part.seen) continue;
    if (!force && typing(part)) { around(part, next); continue; }
    const focus = keep(part, next);
    const put = document.importNode(next, true);
    put.seen = seen;
    part.replaceWith(put);
    if (focus) document.getElementById(focus)?.focus();
  }
  document.title = fresh.title || document.title;
  body.dataset.position = fresh.body.dataset.position ?? body.dataset.position;
  body.dispatchEvent(new CustomEvent("patched", { detail: fresh }));
}

async function look() {
  if (busy || document.hidden) { again = true; return; }
  busy = true;
  again = false;
  const began = performance.now();
  try {
    // A page whose opening leaves a trace names another address to look at for what changed.
    const at = location.href;
    const address = document.querySelector("[data-look]")?.dataset.look ?? at;
    const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.status === 401) { says("signed out"); return; }
    const text = answer.ok ? await answer.text() : null;
    // A form may have been answered meanwhile with another address, and what it says there stays.
    if (location.href !== at) again = true;
    else if (text !== null) patch(new DOMParser().parseFromString(text, "text/html"), { live: true });
  } catch {
    // The stream says when the instance is back.
  } finally {
    busy = false;
    // A busy company does not make a browser do nothing else.
    pause = Math.min(5000, Math.max(300, 4 * (performance.now() - began)));
    if (again) soon();
  }
}

function soon() {
  if (waiting === null) waiting = setTimeout(() => { waiting = null; look(); }, pause);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && again) look(); });

function says(text, on = false) {
  if (!state) return;
  state.textContent = text;
  state.toggleAttribute("data-on", on);
}

// ── hearing of changes ──────────────────────────────────────────────────────────────────────────

let known = false;
let lost = false;
function heard({ data }) {
  if (data.state !== "up") {
    lost = known;
    says(data.state === "out" ? "signed out" : "reconnecting…");
    return;
  }
  says("live", true);
  // Something happened since this page was drawn, be it before the stream was there.
  const grown = String(data.position) !== body.dataset.position;
  if (grown) body.dispatchEvent(new CustomEvent("heard"));
  // The record does not tell of an instance that came back.
  if (grown || lost) soon();
  known = true;
  lost = false;
}

async function listen() {
  const address = body.dataset.events;
  if (!address) return;
  if (typeof SharedWorker !== "undefined") {
    const { port } = new SharedWorker(address, { type: "module", name: "remit" });
    port.onmessage = heard;
    addEventListener("pagehide", () => port.postMessage("bye"));
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
    return;
  }
  const { join } = await import(address);
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = heard;
  join(port2);
}

// ── forms ───────────────────────────────────────────────────────────────────────────────────────

document.addEventListener("input", (event) => { event.target.dataset.dirty = "1"; });

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || form.hasAttribute("data-plain") || !body.dataset.events) return;
  if (form.action.endsWith("/logout") || form.action.endsWith("/login")) return;
  event.preventDefault();
  const buttons = form.querySelectorAll("button");
  const fields = new FormData(form, event.submitter);
  buttons.forEach((one) => { one.disabled = true; });
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(fields) });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const at = new URL(answer.url);
    if (answer.ok && !answer.redirected && at.pathname !== location.pathname) {
      // A page that is shown once, such as a key: asking for it again would be too late.
      document.querySelector("main").replaceWith(document.importNode(fresh.querySelector("main"), true));
      return;
    }
    if (answer.ok && at.pathname !== location.pathname) { takeAlong(fresh); location.assign(answer.url); return; }
    if (answer.ok) {
      form.closest("dialog")?.close();
      form.reset();
      for (const field of form.elements) delete field.dataset.dirty;
      const key = form.elements.namedItem("key");
      if (key) key.value = `web-${crypto.randomUUID()}`;
      if (at.href !== location.href) history.replaceState(null, "", at.href);
    }
    // A visitor who was too late sees what the others made of it.
    const settled = answer.ok || answer.status === 409;
    patch(fresh, { force: settled && form.closest("[data-part]") !== null });
    if (!answer.ok) {
      form.closest("dialog")?.close();
      document.querySelector("[role=alert]")?.scrollIntoView({ block: "center" });
    }
  } catch {
    says("could not be sent; try again");
  } finally {
    buttons.forEach((one) => { one.disabled = false; });
  }
});

// The message about an action is sent once, with the fetched page; the loaded page shows it.
function takeAlong(fresh) {
  const said = fresh.querySelector("[data-part=flash]")?.innerHTML.trim();
  if (said) sessionStorage.setItem("remit-said", said);
}

// It stays a while beside what one looks at, longer while it is pointed at or offers to undo.
let closing = null;
function toast() {
  const place = document.querySelector("[data-part=flash]");
  clearTimeout(closing);
  if (!place?.firstElementChild) return;
  closing = setTimeout(() => {
    if (place.matches(":hover, :focus-within")) toast();
    else place.replaceChildren();
  }, place.querySelector("form") ? 20000 : 10000);
}

function unpack() {
  const said = sessionStorage.getItem("remit-said");
  const place = document.querySelector("[data-part=flash]");
  sessionStorage.removeItem("remit-said");
  // Rendered and escaped by the instance; taken apart as a page is, so that nothing in it runs.
  if (said && place) place.replaceChildren(...new DOMParser().parseFromString(said, "text/html").body.childNodes);
  toast();
}
unpack();
body.addEventListener("patched", toast);

function equip(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}
equip(document);
body.addEventListener("patched", () => equip(document));

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[commandfor]");
  if (button && !("commandForElement" in button)) {
    // Browsers that do not know the attribute yet.
    const dialog = document.getElementById(button.getAttribute("commandfor"));
    if (button.getAttribute("command") === "close") dialog?.close();
    else dialog?.showModal();
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) navigator.clipboard.writeText(copy.dataset.copy).then(() => says("copied", true));
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// ── times ───────────────────────────────────────────────────────────────────────────────────────

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];

class RelativeTime extends HTMLElement {
  connectedCallback() { this.draw(); }
  draw() {
    const at = new Date(this.getAttribute("datetime"));
    if (Number.isNaN(at.getTime())) return;
    let amount = (at - Date.now()) / 1000;
    for (const [unit, size] of STEPS) {
      if (Math.abs(Math.round(amount)) < size) { this.textContent = relative.format(Math.round(amount), unit); break; }
      amount /= size;
    }
    this.title = at.toLocaleString();
  }
}
customElements.define("relative-time", RelativeTime);
setInterval(() => document.querySelectorAll("relative-time").forEach((one) => one.draw()), 30000);

listen();
