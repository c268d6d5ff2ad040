// What tests do within a page: see to what can be measured, make it the same on every machine, compare.
({
  // No word is broken, nothing is cut off without saying so, and no two things to press overlap.
  drawn: () => {
    const found = [], say = (what, one) => found.push(`${what}: ${one.outerHTML.slice(0, 140)}`);
    const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest(".unseen, .skip, svg");
    for (const one of document.querySelectorAll("h1, h2, h3, th, button, summary, .button, label")) {
      if (!seen(one) || !one.textContent.trim()) continue;
      // More lines than words: a word was broken.
      const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const words = texts.currentNode.data.trim().split(/[\s/-]+/).filter(Boolean);
        if (!words.length || words.some((word) => word.length > 24)) continue;
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        const lines = new Set([...range.getClientRects()].filter((box) => box.width > 1).map((box) => Math.round(box.top / 4)));
        if (lines.size > words.length) say("a word is broken", one);
      }
    }
    for (const one of document.querySelectorAll("h1, h2, th, td, dd, dt, p, button, .button, summary, label, li > a")) {
      const style = getComputedStyle(one);
      const hides = style.overflowX !== "visible" && style.overflowX !== "auto" && style.textOverflow !== "ellipsis";
      if (seen(one) && hides && one.scrollWidth > one.clientWidth + 1) say("cut off", one);
    }
    const moves = (one) => one && (/sticky|fixed/.test(getComputedStyle(one).position) || moves(one.parentElement));
    const targets = [...document.querySelectorAll("main button, main .button, main input, main select, main textarea, main summary")]
      .filter((one) => seen(one) && one.type !== "hidden" && !moves(one)).map((one) => [one, one.getBoundingClientRect()]);
    targets.forEach(([one, a], at) => {
      for (const [other, b] of targets.slice(at + 1)) {
        const over = Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
        if (over && !one.contains(other) && !other.contains(one)) say("covered", other);
      }
    });
    return found.slice(0, 8);
  },

  // Letters become blocks; numbers and moments the same; what depends on the time is left out.
  freeze: async (font) => {
    const face = await new FontFace("Blocks", Uint8Array.from(atob(font), (one) => one.charCodeAt(0))).load();
    document.fonts.add(face);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`*, *::before, *::after { font-family: Blocks !important; transition: none !important;
      animation: none !important; caret-color: transparent !important; content-visibility: visible !important; }
      .chart, .live, .lanes { visibility: hidden !important; }`);
    document.adoptedStyleSheets = [sheet];
    for (const one of document.querySelectorAll("relative-time, time")) one.textContent = "0 ago";
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      // Not a hash that happens to be of digits only.
      text.data = text.data.replace(/(?<![\w-])(?!\d{8})\d[\d.,:]*(?![\w-])/g, "0");
    }
    scrollTo(0, 0);
  },

  // Several pictures side by side, on a canvas.
  async beside(all) {
    const drawn = await Promise.all(all.map(async (one) => createImageBitmap(await (await fetch(one)).blob())));
    const width = drawn.reduce((sum, one) => sum + one.width, 0);
    const paper = new OffscreenCanvas(width, Math.max(...drawn.map((one) => one.height))).getContext("2d");
    let at = 0;
    for (const one of drawn) { paper.drawImage(one, at, 0); at += one.width; }
    return paper;
  },

  // The same as one picture.
  async together(all) {
    const reader = new FileReader();
    const read = new Promise((done) => { reader.onload = () => done(reader.result); });
    reader.readAsDataURL(await (await this.beside(all)).canvas.convertToBlob());
    return read;
  },

  // The share of the pixels that differ between a picture and several side by side, in the square
  // of 16 pixels where most do: what changes in one place is not made up for by what did not.
  async differ([known, all, same]) {
    const [a, b] = (await Promise.all([this.beside([known]), this.beside(all)]))
      .map((paper) => paper.getImageData(0, 0, paper.canvas.width, paper.canvas.height));
    if (a.width !== b.width || a.height !== b.height) return 1;
    // A square begins at every half of one, so it is four of these cells.
    const CELL = 8, columns = Math.ceil(a.width / CELL), rows = Math.ceil(a.height / CELL);
    const cells = new Uint8Array((columns + 1) * (rows + 1));
    for (let at = 0; at < a.data.length; at += 4) {
      if (Math.abs(a.data[at] - b.data[at]) > same || Math.abs(a.data[at + 1] - b.data[at + 1]) > same
          || Math.abs(a.data[at + 2] - b.data[at + 2]) > same) {
        const y = Math.floor(at / 4 / a.width), x = at / 4 - y * a.width;
        cells[Math.floor(y / CELL) * (columns + 1) + Math.floor(x / CELL)] += 1;
      }
    }
    let worst = 0;
    for (let row = 0; row < rows; row += 1) {
      for (let at = row * (columns + 1), end = at + columns; at < end; at += 1) {
        worst = Math.max(worst, cells[at] + cells[at + 1] + cells[at + columns + 1] + cells[at + columns + 2]);
      }
    }
    return worst / (4 * CELL * CELL);
  },
})
