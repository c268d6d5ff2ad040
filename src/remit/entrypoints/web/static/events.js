// Shared by all tabs of a browser: one connection to the instance, however many are open.
const ports = new Set();
let last = { state: "down" };
let source;

function tell(message) {
  last = message;
  for (const port of ports) port.postMessage(message);
}

function connect() {
  source = new EventSource("/live");
  const up = (event) => tell({ state: "up", ...JSON.parse(event.data) });
  source.addEventListener("hello", up);
  source.addEventListener("changed", up);
  source.addEventListener("end", () => { source.close(); tell({ state: "out" }); });
  source.onerror = () => {
    tell({ state: "down" });
    // A browser gives up after an answer that is no stream; the instance may only be restarting.
    if (source.readyState === EventSource.CLOSED) setTimeout(retry, 2000);
  };
}

async function retry() {
  // A visitor who was signed out meanwhile is told so, and not let wait for ever.
  const answer = await fetch("/api/me", { cache: "no-store" }).catch(() => null);
  if (answer?.status !== 401) { connect(); return; }
  tell({ state: "out" });
}

function join(port) {
  ports.add(port);
  port.onmessage = (event) => { if (event.data === "bye") ports.delete(port); };
  port.postMessage(last);
  if (!source || last.state === "out") connect();
}

if (typeof SharedWorkerGlobalScope !== "undefined") {
  self.onconnect = (event) => join(event.ports[0]);
}

export { join };
