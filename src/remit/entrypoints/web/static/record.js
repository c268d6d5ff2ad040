// Says how much is new instead of moving what is being read.
const line = document.querySelector("[data-news]");

document.body.addEventListener("patched", () => {
  const last = Number(document.querySelector("[data-last]")?.dataset.last ?? 0);
  const fresh = line ? last - Number(line.dataset.news) : 0;
  if (fresh <= 0) return;
  line.hidden = false;
  line.firstElementChild.textContent = `${fresh.toLocaleString("en")} new`;
});
