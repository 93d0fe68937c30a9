// What the browser tests ask of a page.
window.probes = {
  // Contrast of every piece of text against the nearest opaque background, by the formula of WCAG 2: those below 4.5.
  lowContrast() {
    const parse = (c) => c.match(/[\d.]+/g).map(Number);
    const channel = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const background = (node) => {
      for (; node; node = node.parentElement) {
        const c = parse(getComputedStyle(node).backgroundColor);
        if (c.length === 3 || c[3] > 0) return c;
      }
      return [255, 255, 255];
    };
    const texts = "h1,h2,h3,h4,p,td,th,th button,small,li,dt,dd,summary,nav a,button,figcaption,.v,.legend span";
    return [...document.querySelectorAll(texts)].flatMap((node) => {
      if (!node.textContent.trim() || !node.offsetParent || node.closest("details:not([open])")) return [];
      const a = light(parse(getComputedStyle(node).color)), b = light(background(node));
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      return ratio < 4.5 ? [`${node.tagName} ${node.className} ${ratio.toFixed(2)} ${node.textContent.slice(0, 30)}`] : [];
    });
  },

  // Charts that say they are not drawn, or whose canvas holds fewer than three colours.
  emptyCharts() {
    return [...document.querySelectorAll("figure:not([hidden]) [data-chart]")].filter((chart) => {
      const size = (c) => c.width * c.height;
      const canvas = [...chart.querySelectorAll("canvas")].sort((a, b) => size(b) - size(a))[0];
      if (!canvas || chart.dataset.drawn !== "true") return true;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size < 3;
    }).map((chart) => chart.closest("figure").textContent.slice(0, 60));
  },

  // Tables in sight that are wider than their box.
  wideTables() {
    const wide = (box) => box.scrollWidth > box.clientWidth + 1;
    return [...document.querySelectorAll(".block > .scroll")].filter(wide).map((box) => box.ariaLabel);
  },

  // Screen pixels per cell of the heat map, after what was asked has been painted.
  async cell() {
    await new Promise((done) => setTimeout(done, 100));
    return Number(document.querySelector("[data-chart=heat]").dataset.cell);
  },

  // Scrolls a heat map in 40 steps; the slowest frame in milliseconds and how far it went.
  async scrollMap() {
    const port = document.querySelector(".port"), target = document.querySelector("[data-chart=heat]"), times = [];
    const frame = () => new Promise(requestAnimationFrame);
    for (let i = 0; i < 40; i++) {
      port.scrollLeft = i * 97;
      port.scrollTop = i * 131;
      await frame();
      await frame();
      times.push(Number(target.dataset.paint));
    }
    return { worst: Math.max(...times.slice(2)), left: port.scrollLeft };
  },
};
