// Tells through the browser what needs the visitor while no page of it is looked at.
//
// News on a visible page is known. A hidden page that hears of a change, and looks now and
// then by itself, asks what awaits the visitor and tells of what is new, once for all tabs. Notices
// that their rules hold back come later; those of matters that were decided elsewhere are taken back.

const MOST = 500;
const STORE = "remit-noticed";
const button = document.querySelector("[data-notify]");
const LOOK_AGAIN = 60_000;
const open = new Map();
let waiting = null;

const able = "Notification" in window && isSecureContext;
const known = () => new Set(JSON.parse(localStorage.getItem(STORE) ?? "[]"));
const keep = (keys) => localStorage.setItem(STORE, JSON.stringify([...keys].slice(-MOST)));

function seen() {
  if (document.hidden) return;
  const here = document.querySelector("[data-awaits]")?.dataset.awaits ?? "";
  keep(new Set([...known(), ...here.split(" ").filter(Boolean)]));
}

function tell({ key, kind, title }) {
  const shown = new Notification(`Remit: ${kind}`, { body: title, tag: key });
  shown.onclick = () => { window.focus(); location.assign("/"); shown.close(); };
  open.set(key, shown);
}

async function glance() {
  if (!document.hidden || Notification.permission !== "granted") return;
  const answer = await fetch("/needs/news", { cache: "no-store" }).catch(() => null);
  if (!answer?.ok) return;
  const told = known();
  const awaits = await answer.json();
  const still = new Set(awaits.map(({ key }) => key));
  for (const [key, shown] of open) if (!still.has(key)) { shown.close(); open.delete(key); }
  const fresh = awaits.filter(({ key, tell: now }) => now && !told.has(key));
  if (!fresh.length) return;
  keep(new Set([...told, ...fresh.map(({ key }) => key)]));
  fresh.slice(-3).forEach(tell);
}

function soon() {
  if (!able || !document.hidden || waiting !== null) return;
  waiting = setTimeout(() => {
    waiting = null;
    // One tab tells; the others find it told.
    if (navigator.locks) navigator.locks.request("remit-notify", glance); else glance();
  }, 1000);
}

function draw() {
  if (button) button.hidden = !able || Notification.permission !== "default";
}

button?.addEventListener("click", async () => {
  await Notification.requestPermission();
  draw();
});
document.body.addEventListener("patched", seen);
document.body.addEventListener("heard", soon);
document.addEventListener("visibilitychange", seen);
if (able) { seen(); draw(); setInterval(soon, LOOK_AGAIN); }
