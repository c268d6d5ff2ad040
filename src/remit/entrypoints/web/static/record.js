// Puts what has just happened on top of the list, and leaves everything else where it is.

const list = document.querySelector("[data-record]");
const gap = document.querySelector("[data-gap]");
const MOST = 500;

function newest() {
  return Number(list.firstElementChild?.dataset.seq ?? 0);
}

document.body.addEventListener("patched", ({ detail }) => {
  const there = detail?.querySelector("[data-record]");
  if (!list || !there) return;
  const last = newest();
  const fresh = [...there.children].filter((one) => Number(one.dataset.seq) > last);
  if (!fresh.length) return;
  document.querySelector("[data-none]")?.remove();
  // All of a full page is new: in between something may be missing.
  if (last && fresh.length === Number(list.dataset.page)) gap.hidden = false;
  // Whoever has scrolled down keeps reading where they are.
  const before = list.getBoundingClientRect().bottom;
  const reading = list.getBoundingClientRect().top < 0;
  list.prepend(...fresh.map((one) => {
    const put = document.importNode(one, true);
    put.classList.add("fresh");
    return put;
  }));
  if (reading) scrollBy(0, list.getBoundingClientRect().bottom - before);
  while (list.children.length > MOST) list.lastElementChild.remove();
});
