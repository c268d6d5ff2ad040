// Live log of a run: drawn once per frame, and never more of it than a browser can bear.
const log = document.querySelector("[data-log]");
const tools = document.querySelector("[data-log-tools]");
const follow = document.getElementById("follow");
const find = document.getElementById("find");
const found = document.querySelector("[data-found]");
const MOST_ENTRIES = 5000;
const KINDS = new Set(["said", "thought", "call", "result", "denied", "retry", "turn", "printed", "note", "end"]);

let pending = [];
let scheduled = false;
let dropped = 0;

function draw() {
  scheduled = false;
  const some = document.createDocumentFragment();
  for (const entry of pending.splice(0)) {
    const line = document.createElement("div");
    line.className = `entry ${KINDS.has(entry.kind) ? entry.kind : "printed"}`;
    line.classList.toggle("bad", entry.stream === "stderr" || entry.failed === true);
    line.textContent = entry.shown;
    if (entry.cut) line.append(" ", whole(entry.number));
    some.append(line);
  }
  log.append(some);
  while (log.childElementCount > MOST_ENTRIES) { log.firstElementChild.remove(); dropped += 1; }
  if (dropped) log.dataset.cut = "The beginning is not shown here any more; it is in what its program printed.";
  if (find.value) look();
  if (follow.checked) log.scrollTop = log.scrollHeight;
}

function whole(number) {
  const link = document.createElement("a");
  const which = document.createElement("span");
  link.href = `${log.dataset.entry}/${Number(number)}`;
  which.className = "unseen";
  which.textContent = `, entry ${Number(number)}`;
  link.append("Show all", which);
  return link;
}

function add(piece) {
  pending.push(piece);
  // A hidden page draws nothing, so what would be cut anyway is not kept.
  if (pending.length > MOST_ENTRIES) pending = pending.slice(-MOST_ENTRIES);
  if (!scheduled) { scheduled = true; requestAnimationFrame(draw); }
}

function look() {
  const wanted = find.value.toLowerCase();
  let count = 0;
  let first = null;
  for (const piece of log.children) {
    const hit = wanted !== "" && piece.textContent.toLowerCase().includes(wanted);
    piece.classList.toggle("hit", hit);
    if (hit) { count += 1; first ??= piece; }
  }
  found.textContent = wanted === "" ? "" : `${count} found`;
  return first;
}

// An ended run is read from its beginning, a live one where it is.
const over = "over" in log.dataset;
follow.checked = !over;
follow.closest("label").hidden = over;
tools.hidden = false;
document.querySelector("[data-more]").hidden = true;
find.addEventListener("input", () => {
  const first = look();
  if (first) { follow.checked = false; first.scrollIntoView({ block: "nearest" }); }
});
// Scrolling up means reading.
log.addEventListener("wheel", (event) => { if (event.deltaY < 0) follow.checked = false; }, { passive: true });
follow.addEventListener("change", () => { if (follow.checked) log.scrollTop = log.scrollHeight; });
if (!over) log.scrollTop = log.scrollHeight;

// The tree of steps is the server's; it is fetched again when there is more of it.
let fetching = 0;
async function grow() {
  fetching = 0;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => null);
  const there = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-part=steps]");
  const here = document.querySelector("[data-part=steps]");
  if (!there || here.contains(document.activeElement)) return;
  for (const one of here.querySelectorAll("details[id]")) {
    const same = there.querySelector(`#${CSS.escape(one.id)}`);
    if (same) same.open = one.open;
  }
  here.replaceChildren(...document.importNode(there, true).childNodes);
}

const source = new EventSource(`${log.dataset.log}?as=transcript&follow=1&after=${log.dataset.seen}`);
source.onmessage = (event) => {
  const entry = JSON.parse(event.data);
  add(entry);
  if (!over && (entry.kind === "turn" || entry.kind === "result") && !fetching) fetching = setTimeout(grow, 1500);
};
source.addEventListener("end", () => source.close());
addEventListener("pagehide", () => source.close());
