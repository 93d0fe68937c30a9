// Curves on uPlot, which gives scales, axes and drag-to-zoom. Points, intervals and lines are drawn in one hook here, since
// a series may hold several points at one x, markers differ by shape as well as colour, and a limit is a dashed line.
LW.polygon = (corners, turn, size) => (c, x, y, r) => {
  for (let k = 0; k < corners; k++) {
    const angle = ((k + turn) / corners) * 2 * Math.PI;
    c[k ? "lineTo" : "moveTo"](x + r * size * Math.sin(angle), y - r * size * Math.cos(angle));
  }
  c.closePath();
};
LW.star = (points) => (c, x, y, r) => {
  for (let k = 0; k < 2 * points; k++) {
    const angle = (k / points) * Math.PI, size = k % 2 ? 0.6 : 1.6;
    c[k ? "lineTo" : "moveTo"](x + r * size * Math.sin(angle), y - r * size * Math.cos(angle));
  }
  c.closePath();
};
LW.markers = [
  (c, x, y, r) => c.arc(x, y, r, 0, 2 * Math.PI),
  LW.polygon(4, 0.5, 1.3), LW.polygon(3, 0, 1.4), LW.polygon(4, 0, 1.4),
  LW.polygon(3, 1.5, 1.4), LW.star(4), LW.polygon(3, 0.75, 1.4), LW.star(5),
];
// The look of a curve: colour and marker as series.py gave them to its series; curves of a group and limits of none are grey.
LW.style = (curve) => ({ colour: curve.colour === null ? "--limit" : `--s${curve.colour}`, marker: LW.markers[curve.marker ?? 0], faint: Boolean(curve.group) });

// Tick positions: powers of two or ten, thinned to fit; round steps below one decade.
LW.ticks = (min, max, scale, room) => {
  if (scale === "log2") return LW.powers(min, max, 2, room);
  if (scale === "log10" && max / min >= 20) {
    const tens = LW.powers(min, max, 10, room);
    const finer = LW.powers(min / 10, max, 10, 99).flatMap((t) => [t, 2 * t, 5 * t]).filter((t) => t >= min && t <= max);
    return finer.length <= room ? finer : tens;
  }
  const rough = (max - min) / Math.max(2, room), ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * [1, 2, 5, 10].find((m) => ten * m >= rough);
  const ticks = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max * (1 + 1e-12) + step * 1e-9; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
};
LW.powers = (min, max, base, room) => {
  const log = (v) => Math.log(v) / Math.log(base);
  const first = Math.ceil(log(min) - 1e-9), last = Math.floor(log(max) + 1e-9);
  const step = [1, 2, 3, 5, 10, 20, 50].find((s) => (last - first) / s < Math.max(2, room)) || 100;
  const ticks = [];
  for (let i = Math.ceil(first / step) * step; i <= last; i += step) ticks.push(base ** i);
  return ticks;
};

LW.range = (values, scale) => {
  let min = Infinity, max = -Infinity;
  for (const v of values) if (v !== null && (scale === "linear" || v > 0)) { min = Math.min(min, v); max = Math.max(max, v); }
  if (min === Infinity) return [1, 10];
  if (scale === "linear" && min >= 0 && min < 0.6 * max) return [0, max * 1.06];
  if (scale === "linear") { const pad = (max - min || Math.abs(max) || 1) * 0.06; return [min - pad, max + pad]; }
  const pad = Math.max((max / min) ** 0.05, 1.15);
  return [min / pad, max * pad];
};

// Options shared by curves and boxes: axes in the colours of the theme, drag to zoom, double-click to reset.
LW.axes = (spec) => ["x", "y"].map((which) => ({
  label: spec[which].label, labelSize: spec[which].label ? 20 : 0, labelGap: 2, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif",
  size: which === "x" ? spec.x.size || 30 : (u, shown) => 16 + LW.widest(shown || []), gap: 4, stroke: () => LW.colour("--quiet"),
  grid: { stroke: () => LW.colour("--grid"), width: 1, show: spec[which].grid !== false }, ticks: { stroke: () => LW.colour("--line"), width: 1, size: 4 },
  splits: spec[which].splits, filter: (u, splits) => splits, values: (u, splits) => splits.map(spec[which].text),
}));
LW.widest = (texts) => {
  LW.ruler ||= document.createElement("canvas").getContext("2d");
  LW.ruler.font = "12px system-ui, sans-serif";
  return Math.max(24, ...texts.map((text) => LW.ruler.measureText(text || "").width));
};
LW.uplot = (target, spec, hooks) => new uPlot({
  width: target.clientWidth || 480, height: spec.height, legend: { show: false }, padding: [10, 26, 0, 0],
  cursor: { drag: { x: spec.zoom !== false, y: spec.zoom !== false, uni: 12 }, points: { show: false }, x: false, y: false },
  scales: Object.fromEntries(["x", "y"].map((which) => [which, {
    time: false, distr: spec[which].scale === "linear" ? 1 : 3, log: spec[which].scale === "log2" ? 2 : 10,
    range: (u, min, max) => (min === null || min >= max ? spec[which].range : [min, max]),
  }])),
  axes: LW.axes(spec), series: [{}, { paths: () => null, points: { show: false } }], hooks,
}, [spec.x.range, spec.y.range], target);

LW.curve = (target, data) => {
  const styles = data.curves.map(LW.style), hidden = new Set();
  let placed = [], chart = null, lifted = [];
  const drawn = data.curves.flatMap((c) => c.points);
  // Between counts, such as 3 and 4 GPUs, there is nothing to mark.
  const marks = (a, values, ticks) => (a.unit === "1" && a.scale === "linear" && values.every(Number.isInteger) ? ticks.filter(Number.isInteger) : ticks);
  const axis = (a, values, room) => ({
    scale: a.scale, range: LW.range(values, a.scale), label: LW.axisLabel(a), text: (v) => LW.tick(v, a.unit),
    splits: (u, i, min, max) => marks(a, values, LW.ticks(min, max, a.scale, room())),
  });
  const spec = {
    height: 300,
    x: axis(data.x, LW.abreast(drawn.map((p) => p[0]), data), () => (target.clientWidth || 480) / (30 + LW.widest(drawn.map((p) => LW.tick(p[0], data.x.unit))))),
    y: axis(data.y, drawn.flatMap((p) => [p[1], p[2], p[3]]), () => 6),
  };

  const draw = (u) => {
    const c = u.ctx, dpr = devicePixelRatio || 1, { left, top, width, height } = u.bbox;
    placed = [];
    c.save();
    c.beginPath(); c.rect(left - 4 * dpr, top - 4 * dpr, width + 8 * dpr, height + 8 * dpr); c.clip();
    const shift = data.dodge ? LW.dodge(u, data.curves, hidden) : () => 0;
    data.curves.forEach((curve, i) => {
      if (hidden.has(i)) return;
      const at = curve.points.map(([x, y, low, high]) => ({
        x: u.valToPos(x, "x", true) + shift(i), y: u.valToPos(y, "y", true),
        low: low === null ? null : u.valToPos(data.y.scale === "linear" ? low : Math.max(low, spec.y.range[0] / 10), "y", true),
        high: high === null ? null : u.valToPos(high, "y", true),
      }));
      c.globalAlpha = !lifted.length || lifted.includes(i) ? 1 : 0.18;
      LW.drawCurve(c, curve.kind, at, styles[i], dpr, data.scatter);
      at.forEach((p, k) => placed.push({ x: p.x / dpr, y: p.y / dpr, curve: i, point: k }));
    });
    c.restore();
    target.dataset.drawn = "true";
  };

  const describe = (p) => {
    const [x, y, low, high, note] = data.curves[p.curve].points[p.point];
    const interval = low === null || high === null ? "" : `95 % interval ${LW.text(low, data.y.unit)} – ${LW.text(high, data.y.unit)}`;
    return [`${data.curves[p.curve].name}`, [`${data.x.title} ${LW.text(x, data.x.unit)}`, `${data.y.title} ${LW.text(y, data.y.unit)}`, interval, note]];
  };
  const show = (p) => {
    const box = chart.root.querySelector("canvas").getBoundingClientRect();
    const [title, lines] = describe(p);
    LW.tip.show(box.left + p.x, box.top + p.y, title, lines);
    target.dataset.hover = title;
  };
  const nearest = (x, y) => placed.reduce((best, p) => {
    const far = Math.hypot(p.x - x, p.y - y) + (data.curves[p.curve].kind === "limit" ? 4 : 0); // prefer a result to its limit
    return far < best.far ? { far, p } : best;
  }, { far: 26, p: null }).p;

  chart = LW.uplot(target, spec, { draw: [draw] });
  chart.over.addEventListener("mousemove", (event) => {
    const box = chart.root.querySelector("canvas").getBoundingClientRect();
    const found = nearest(event.clientX - box.left, event.clientY - box.top);
    if (found) show(found); else LW.tip.hide();
  });
  chart.over.addEventListener("mouseleave", () => LW.tip.hide());
  LW.keys(target, `${data.title}: chart, arrow keys go through its points`, (step, at) => {
    const next = placed[(at + step + placed.length) % placed.length];
    if (next) show(next);
    return placed.indexOf(next);
  });

  const legend = LW.element("div", target, "legend");
  const entries = new Map(); // name in the legend -> its curves: one, or all of a group
  data.curves.forEach((curve, i) => {
    const name = curve.group || curve.name;
    entries.set(name, [...(entries.get(name) || []), i]);
  });
  const swatches = [...entries].map(([name, its]) => {
    const button = LW.element("button", legend);
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    if (data.curves[its[0]].group) button.title = its.map((i) => data.curves[i].name).join(", ");
    const swatch = LW.element("canvas", button);
    LW.element("span", button, "", name);
    button.addEventListener("click", () => {
      for (const i of its) if (!hidden.delete(i)) hidden.add(i);
      button.setAttribute("aria-pressed", String(!hidden.has(its[0])));
      chart.redraw();
    });
    button.addEventListener("mouseenter", () => { lifted = its; chart.redraw(); });
    button.addEventListener("mouseleave", () => { lifted = []; chart.redraw(); });
    return () => LW.swatch(swatch, data.curves[its[0]].kind, styles[its[0]]);
  });
  const redraw = () => { swatches.forEach((paint) => paint()); chart.redraw(false, true); };
  redraw();
  return { redraw, target, points: () => placed, resize: (width) => chart.setSize({ width: width || target.clientWidth || 480, height: spec.height }) };
};

// Sideways shift of each measured curve in canvas pixels, within a fraction of the distance between neighbouring x.
LW.dodge = (u, curves, hidden) => {
  const side = curves.map((c, i) => i).filter((i) => curves[i].kind === "measured" && !hidden.has(i));
  const xs = [...new Set(side.flatMap((i) => curves[i].points.map((p) => u.valToPos(p[0], "x", true))))].sort((a, b) => a - b);
  const gap = Math.min(...xs.slice(1).map((x, k) => x - xs[k]), 400);
  const step = Math.min(4 * (devicePixelRatio || 1), (0.6 * gap) / Math.max(1, side.length));
  return (i) => (side.includes(i) ? (side.indexOf(i) - (side.length - 1) / 2) * step : 0);
};

// Widens the x range of a chart with dodged points by the largest shift of LW.dodge.
LW.abreast = (values, data) => {
  const log = data.x.scale !== "linear";
  const xs = [...new Set(values)].filter((x) => !log || x > 0).map((x) => (log ? Math.log(x) : x)).sort((a, b) => a - b);
  if (!data.dodge || xs.length < 2) return values;
  const shift = 0.3 * Math.min(...xs.slice(1).map((x, k) => x - xs[k]));
  return [xs[0] - shift, xs.at(-1) + shift].map((x) => (log ? Math.exp(x) : x));
};

LW.drawCurve = (c, kind, at, style, dpr, scatter) => {
  c.strokeStyle = c.fillStyle = LW.colour(style.colour);
  const whole = c.globalAlpha;
  if (style.faint) c.globalAlpha = 0.6 * whole;
  if (!scatter || kind !== "measured") {
    c.save();
    if (kind === "measured") c.globalAlpha *= 0.45; // guides the eye; only the points were measured
    c.lineWidth = (kind === "model" && !style.faint ? 1.5 : 1.25) * dpr;
    c.setLineDash(kind === "limit" ? [5 * dpr, 4 * dpr] : []);
    c.beginPath(); at.forEach((p, k) => (k ? c.lineTo(p.x, p.y) : c.moveTo(p.x, p.y))); c.stroke();
    c.restore();
  }
  if (kind !== "limit") LW.drawPoints(c, kind, at, style, dpr);
  c.globalAlpha = whole;
};

LW.drawPoints = (c, kind, at, style, dpr) => {
  c.lineWidth = 1.5 * dpr;
  const r = (style.faint ? 1.6 : kind === "model" ? 2.8 : 3.4) * dpr, cap = 2.6 * dpr;
  for (const p of at) {
    if (!style.faint && p.low !== null && p.high !== null && p.low - p.high > 2 * r) {
      c.beginPath(); c.moveTo(p.x, p.low); c.lineTo(p.x, p.high);
      for (const y of [p.low, p.high]) { c.moveTo(p.x - cap, y); c.lineTo(p.x + cap, y); }
      c.stroke();
    }
    c.beginPath(); style.marker(c, p.x, p.y, r); c.fill();
  }
};

LW.swatch = (canvas, kind, style) => {
  const dpr = devicePixelRatio || 1;
  canvas.width = 22 * dpr; canvas.height = 12 * dpr; canvas.style.width = "22px"; canvas.style.height = "12px";
  const none = { low: null, high: null }, y = 6 * dpr;
  const at = kind === "limit" ? [{ x: 1 * dpr, y }, { x: 21 * dpr, y }] : kind === "model" ? [{ x: 2 * dpr, y, ...none }, { x: 11 * dpr, y, ...none }, { x: 20 * dpr, y, ...none }] : [{ x: 11 * dpr, y, ...none }];
  LW.drawCurve(canvas.getContext("2d"), kind, at, style, dpr, true);
};

// A chart in the tab order: arrow keys step through what can be hovered, Escape leaves.
LW.keys = (target, label, go) => {
  let at = -1;
  target.tabIndex = 0;
  target.setAttribute("role", "group");
  target.setAttribute("aria-label", label);
  target.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") LW.tip.hide();
    if (!step || event.target !== target) return;
    event.preventDefault();
    at = go(step, at < 0 && step < 0 ? 0 : at);
    LW.live.textContent = LW.tip.box ? LW.tip.box.innerText : "";
  });
  target.addEventListener("blur", () => LW.tip.hide());
};
