// Box plots on uPlot's axes: box from q1 to q3, line at the median, whiskers, dots for outliers.
LW.boxplot = (target, data) => {
  const boxes = data.boxes, names = boxes.map((b) => LW.wrapped(b.name));
  let chart = null, placed = [];
  const spec = {
    height: 300, zoom: false,
    x: { scale: "linear", range: [-0.6, boxes.length - 0.4], label: "", grid: false, text: (i) => names[i], size: 12 + 18 * Math.max(...names.map((n) => n.split("\n").length)), splits: () => boxes.map((_, i) => i).filter((i) => i % LW.every(names, target) === 0) },
    y: { scale: data.y.scale, range: LW.range(boxes.flatMap((b) => [b.low, b.high, ...b.outliers]), data.y.scale), label: LW.axisLabel(data.y), text: (v) => LW.tick(v, data.y.unit), splits: (u, i, min, max) => LW.ticks(min, max, data.y.scale, 6) },
  };
  const draw = (u) => {
    const c = u.ctx, dpr = devicePixelRatio || 1;
    const y = (v) => u.valToPos(v, "y", true), half = Math.min(22 * dpr, (u.bbox.width / boxes.length) * 0.3);
    c.save();
    c.lineWidth = 1.5 * dpr;
    c.strokeStyle = LW.colour("--s0");
    if (data.y.scale === "linear" && spec.y.range[0] < 0 && spec.y.range[1] > 0) {
      c.save(); c.strokeStyle = LW.colour("--limit"); c.lineWidth = dpr; c.setLineDash([5 * dpr, 4 * dpr]);
      c.beginPath(); c.moveTo(u.bbox.left, y(0)); c.lineTo(u.bbox.left + u.bbox.width, y(0)); c.stroke(); c.restore();
    }
    placed = boxes.map((b, i) => {
      const x = u.valToPos(i, "x", true);
      c.fillStyle = LW.colour("--bar");
      c.beginPath(); c.moveTo(x, y(b.low)); c.lineTo(x, y(b.q1)); c.moveTo(x, y(b.q3)); c.lineTo(x, y(b.high));
      for (const v of [b.low, b.high]) { c.moveTo(x - half / 2, y(v)); c.lineTo(x + half / 2, y(v)); }
      c.stroke();
      c.beginPath(); c.rect(x - half, y(b.q3), 2 * half, y(b.q1) - y(b.q3)); c.fill(); c.stroke();
      c.save(); c.lineWidth = 2.5 * dpr; c.beginPath(); c.moveTo(x - half, y(b.median)); c.lineTo(x + half, y(b.median)); c.stroke(); c.restore();
      c.fillStyle = LW.colour("--s0");
      for (const v of b.outliers) { c.beginPath(); c.arc(x, y(v), 2.2 * dpr, 0, 2 * Math.PI); c.fill(); }
      return { x: x / dpr, y: y(b.median) / dpr };
    });
    c.restore();
    target.dataset.drawn = "true";
  };
  const show = (i) => {
    const canvas = chart.root.querySelector("canvas").getBoundingClientRect(), b = boxes[i];
    const text = (v) => LW.text(v, data.y.unit);
    LW.tip.show(canvas.left + placed[i].x, canvas.top + placed[i].y, b.name, [`median ${text(b.median)}`, `middle half ${text(b.q1)} – ${text(b.q3)}`, `whiskers ${text(b.low)} – ${text(b.high)}`, b.outliers.length ? `${b.outliers.length} outliers, ${text(b.outliers[0])} – ${text(b.outliers[b.outliers.length - 1])}` : "", `n ${b.n}`]);
    target.dataset.hover = b.name;
  };
  chart = LW.uplot(target, spec, { draw: [draw] });
  chart.over.addEventListener("mousemove", (event) => {
    const i = Math.round(chart.posToVal(event.offsetX, "x"));
    if (boxes[i]) show(i); else LW.tip.hide();
  });
  chart.over.addEventListener("mouseleave", () => LW.tip.hide());
  LW.keys(target, `${data.title}: box plot, arrow keys go through its boxes`, (step, at) => {
    const next = (at + step + boxes.length) % boxes.length;
    show(next);
    return next;
  });
  return { redraw: () => chart.redraw(false, true), resize: (width) => chart.setSize({ width: width || target.clientWidth || 480, height: spec.height }) };
};

// The smallest n such that every n-th name fits below its box.
LW.every = (names, target) => {
  const longest = LW.widest(names.flatMap((name) => name.split("\n"))) + 10;
  return Math.max(1, Math.ceil((longest * names.length) / Math.max(200, target.clientWidth - 90)));
};

// A long name, broken after spaces and underscores into lines of about 12 letters.
LW.wrapped = (name) => name.split(/(?<=[_ ])/).reduce((lines, part) => {
  const last = lines.length - 1;
  if (last >= 0 && lines[last].length + part.length <= 12) lines[last] += part; else lines.push(part);
  return lines;
}, []).join("\n");
