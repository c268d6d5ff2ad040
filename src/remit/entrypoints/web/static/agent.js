// Opens an agent's state document when somebody unfolds it, and not before: each reading is noted.
for (const fold of document.querySelectorAll("details[data-load]")) {
  fold.addEventListener("toggle", async () => {
    if (!fold.open || fold.dataset.state) return;
    const place = fold.querySelector("[data-loaded]");
    fold.dataset.state = "loading";
    place.textContent = "Loading…";
    try {
      const answer = await fetch(fold.dataset.load, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const text = page.querySelector("[data-text]");
      if (!answer.ok || !text) throw new Error("not there");
      place.replaceChildren(...document.importNode(text, true).childNodes);
      fold.dataset.state = "loaded";
    } catch {
      place.textContent = "It could not be opened. Fold it and try again.";
      delete fold.dataset.state;
    }
  });
}
