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
      text.data = text.data.replace(/(?<![\w-])\d[\d.,:]*(?![\w-])/g, "0");
    }
    scrollTo(0, 0);
  },

  // Several pictures side by side.
  together: async (all) => {
    const drawn = await Promise.all(all.map(async (one) => createImageBitmap(await (await fetch(one)).blob())));
    const width = drawn.reduce((sum, one) => sum + one.width, 0);
    const canvas = new OffscreenCanvas(width, Math.max(...drawn.map((one) => one.height)));
    const paper = canvas.getContext("2d");
    let at = 0;
    for (const one of drawn) { paper.drawImage(one, at, 0); at += one.width; }
    const blob = await canvas.convertToBlob();
    return new Promise((done) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result);
      reader.readAsDataURL(blob);
    });
  },

  // The share of the pixels that differ, in the square of two pictures where most do.
  differ: async ([one, two, same]) => {
    const SIDE = 16;
    const [a, b] = await Promise.all([one, two].map(async (url) => {
      const image = await createImageBitmap(await (await fetch(url)).blob());
      const canvas = new OffscreenCanvas(image.width, image.height);
      const paper = canvas.getContext("2d");
      paper.drawImage(image, 0, 0);
      return paper.getImageData(0, 0, image.width, image.height);
    }));
    if (a.width !== b.width || a.height !== b.height) return 1;
    // The worst of all squares: what changes in one place is not made up for by what did not.
    let worst = 0;
    for (let top = 0; top < a.height; top += SIDE / 2) {
      for (let left = 0; left < a.width; left += SIDE / 2) {
        let number = 0;
        for (let y = top; y < Math.min(top + SIDE, a.height); y += 1) {
          for (let x = left; x < Math.min(left + SIDE, a.width); x += 1) {
            const at = 4 * (y * a.width + x);
            for (let color = at; color < at + 3; color += 1) {
              if (Math.abs(a.data[color] - b.data[color]) > same) { number += 1; break; }
            }
          }
        }
        worst = Math.max(worst, number / (SIDE * SIDE));
      }
    }
    return worst;
  },
})
