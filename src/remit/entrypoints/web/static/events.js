// Shared by all tabs of a browser: one connection to the instance, however many are open.
const ports = new Set();
let last = "down";
let source;

function tell(message) {
  for (const port of ports) port.postMessage(message);
}

function connect() {
  source = new EventSource("/live");
  source.addEventListener("hello", () => { last = "up"; tell({ state: last, companies: null }); });
  source.addEventListener("changed", (event) => tell({ state: "up", ...JSON.parse(event.data) }));
  source.addEventListener("end", () => { source.close(); last = "out"; tell({ state: last }); });
  source.onerror = () => {
    last = "down";
    tell({ state: last });
    // A browser gives up after an answer that is no stream; the instance may only be restarting.
    if (source.readyState === EventSource.CLOSED) setTimeout(retry, 2000);
  };
}

async function retry() {
  // Whoever was signed out meanwhile is told so, and not let wait for ever.
  const answer = await fetch("/api/me", { cache: "no-store" }).catch(() => null);
  if (answer?.status !== 401) { connect(); return; }
  last = "out";
  tell({ state: last });
}

function join(port) {
  ports.add(port);
  port.onmessage = (event) => { if (event.data === "bye") ports.delete(port); };
  port.postMessage({ state: last });
  if (!source || last === "out") connect();
}

if (typeof SharedWorkerGlobalScope !== "undefined") {
  self.onconnect = (event) => join(event.ports[0]);
}

export { join };
