// A heat map that stays fast at millions of cells. Each cell is painted once, as one pixel of an off-screen image; every
// frame copies only the visible part, enlarged. The scroll bars are native: an empty block as large as the whole map sets
// their length, and a canvas as large as the viewport sticks in front of it.
LW.anchors = ["#2a1a4f", "#3b3f8f", "#2f6f9f", "#25998f", "#5bbf6f", "#bcd94a", "#fdf0a0"];
LW.aroundOne = ["#8c3b12", "#d07a3a", "#f0c9a0", "#f2f2ee", "#a8cfe0", "#4a90b8", "#1d4f7a"];
LW.lutOf = (anchors) => {
  const rgb = anchors.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (rgb.length - 1), k = Math.min(rgb.length - 2, Math.floor(at));
    return rgb[k].map((v, j) => Math.round(v + (rgb[k + 1][j] - v) * (at - k)));
  });
};

LW.unpack = async (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Float32Array(await new Response(stream).arrayBuffer());
};

LW.heat = async (target, data) => {
  const [values, low, high] = await Promise.all([data.values, data.low, data.high].map((part) => part && LW.unpack(part)));
  const rows = data.rows.length, columns = data.columns.length;
  let least = Infinity, most = -Infinity;
  for (const v of values) if (v === v) { if (v < least) least = v; if (v > most) most = v; }
  const ratios = data.ends.length > 0 && least > 0;
  if (ratios) { most = Math.max(most, 1 / least, 1.1); least = 1 / most; } // 1 in the middle
  const log = (ratios || data.scale === "log10") && least > 0 && most > least;
  const anchors = ratios ? LW.aroundOne : LW.anchors, lut = LW.lutOf(anchors);
  if (!log && least > 0 && most > least) most = Math.max(most, 1.1 * least); // do not stretch a difference below 10 % to the full colour scale
  const span = log ? Math.log(most / least) : most - least;
  const level = (v) => (span > 0 ? Math.round(255 * (log ? Math.log(v / least) : v - least) / span) : 128);
  const image = LW.heatImage(values, rows, columns, level, lut);

  const tools = LW.element("div", target, "tools"), port = LW.element("div", target, "port");
  const spacer = LW.element("i", port), canvas = LW.element("canvas", port), readout = LW.element("div", target, "readout", "Hover over a cell to read it.");
  const ratio = devicePixelRatio || 1;
  const edge = (names) => Math.min(110, 14 + 7 * Math.max(...names.slice(0, 2000).map((n) => n.length), 3));
  const gutter = { left: edge(data.rows), top: 22 };
  let size = 0, cell = 1, at = null, waiting = false, pixels = { width: 0, height: 0 };

  const foot = 5; // room for the lower half of the last name
  const fit = () => Math.min((pixels.width - gutter.left) / columns, (pixels.height - gutter.top - foot) / rows);
  const layout = () => {
    spacer.style.width = `${gutter.left + columns * cell}px`;
    spacer.style.height = `${gutter.top + rows * cell}px`;
    ask();
  };
  const ask = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } };
  const zoom = (factor, x = pixels.width / 2, y = pixels.height / 2) => {
    const before = cell;
    cell = Math.max(fit(), Math.min(80, cell * factor));
    const ax = (port.scrollLeft + x - gutter.left) / before, ay = (port.scrollTop + y - gutter.top) / before;
    layout();
    port.scrollLeft = ax * cell + gutter.left - x;
    port.scrollTop = ay * cell + gutter.top - y;
  };
  const resize = (given) => {
    const width = Math.floor(given || target.clientWidth), full = cell <= size * 1.001;
    if (width < 40) return;
    const edges = gutter.top + foot + 2, room = Math.min((width - gutter.left - 2) / columns, 110) * rows + edges;
    const height = Math.round(Math.max(150, Math.min(560, room)));
    port.style.height = `${height}px`;
    port.style.width = `${Math.min(width, Math.max(220, Math.ceil((height - edges) / rows * columns) + gutter.left + 2))}px`;
    pixels = { width: parseInt(port.style.width, 10) - 2, height: height - 2 };
    canvas.width = pixels.width * ratio; canvas.height = pixels.height * ratio;
    canvas.style.width = `${pixels.width}px`; canvas.style.height = `${pixels.height}px`;
    size = fit();
    cell = full || !cell ? size : Math.max(size, cell);
    layout();
  };

  const paint = () => {
    const c = canvas.getContext("2d"), started = performance.now();
    const sx = port.scrollLeft / cell, sy = port.scrollTop / cell;
    const wide = Math.min(columns - sx, (pixels.width - gutter.left) / cell), tall = Math.min(rows - sy, (pixels.height - gutter.top) / cell);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = LW.colour("--panel");
    c.fillRect(0, 0, pixels.width, pixels.height);
    c.save();
    c.beginPath(); c.rect(gutter.left, gutter.top, wide * cell, tall * cell); c.clip();
    c.fillStyle = LW.colour("--soft"); c.fillRect(gutter.left, gutter.top, wide * cell, tall * cell);
    c.imageSmoothingEnabled = cell < 1; // several cells per pixel: average them, so that no row is lost
    c.drawImage(image, sx, sy, wide, tall, gutter.left, gutter.top, wide * cell, tall * cell);
    if (cell >= 8) LW.heatLines(c, gutter, sx, sy, wide, tall, cell);
    if (cell >= 46) LW.heatText(c, gutter, sx, sy, wide, tall, cell, columns, values, data.unit, level, lut);
    if (at) {
      c.strokeStyle = LW.colour("--ink"); c.lineWidth = 2;
      c.strokeRect(gutter.left + (at.column - sx) * cell - 1, gutter.top + (at.row - sy) * cell - 1, cell + 2, cell + 2);
    }
    c.restore();
    LW.heatNames(c, gutter, sx, sy, wide, tall, cell, data);
    target.dataset.drawn = "true";
    target.dataset.cell = cell.toFixed(3);
    target.dataset.paint = (performance.now() - started).toFixed(2);
  };

  const words = ({ row, column }) => {
    const k = row * columns + column, v = values[k];
    const value = v === v ? LW.text(v, data.unit) : `no value: ${data.missing}`;
    const interval = v === v && low && high && low[k] === low[k] ? `${LW.plusMinus(v, low[k], high[k])}, 95 % interval ${LW.text(low[k], data.unit)} – ${LW.text(high[k], data.unit)}` : "";
    return [`${data.rows[row]} → ${data.columns[column]}`, [value, interval]];
  };
  const point = (found, x, y) => {
    at = found;
    if (!at) { LW.tip.hide(); return ask(); }
    const [title, lines] = words(at);
    if (x !== undefined) LW.tip.show(x, y, title, lines);
    readout.textContent = [`${data.rows_title} ${data.rows[at.row]}, ${data.columns_title} ${data.columns[at.column]}: ${lines[0]}`, lines[1]].filter(Boolean).join(", ");
    target.dataset.hover = readout.textContent;
    ask();
  };
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - gutter.left + port.scrollLeft) / cell), row = Math.floor((event.clientY - box.top - gutter.top + port.scrollTop) / cell);
    const inside = event.clientX - box.left >= gutter.left && event.clientY - box.top >= gutter.top;
    return inside && row >= 0 && column >= 0 && row < rows && column < columns ? { row, column } : null;
  };

  LW.heatTools(tools, zoom, () => { cell = size; layout(); }, [data.ends[0], LW.text(least, data.unit, 3)], [LW.text(most, data.unit, 3), data.ends[1] || (log ? "(log)" : "")], anchors, most >= least);
  LW.heatInput(port, canvas, { zoom, under, point, ask, move: (dy, dx) => {
    const next = at ? { row: Math.max(0, Math.min(rows - 1, at.row + dy)), column: Math.max(0, Math.min(columns - 1, at.column + dx)) } : { row: 0, column: 0 };
    const x = gutter.left + next.column * cell, y = gutter.top + next.row * cell;
    port.scrollLeft = Math.min(Math.max(port.scrollLeft, x + cell - pixels.width), x - gutter.left);
    port.scrollTop = Math.min(Math.max(port.scrollTop, y + cell - pixels.height), y - gutter.top);
    point(next);
    LW.live.textContent = readout.textContent;
  } });
  port.setAttribute("aria-label", `${data.title}: heat map; arrow keys move between cells`);
  cell = 0;
  resize();
  return { redraw: ask, resize };
};

LW.heatImage = (values, rows, columns, level, lut) => {
  const image = new OffscreenCanvas(columns, rows), c = image.getContext("2d"), made = c.createImageData(columns, rows);
  const bytes = new Uint32Array(made.data.buffer), packed = lut.map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
  for (let i = 0; i < values.length; i++) bytes[i] = values[i] === values[i] ? packed[level(values[i])] : 0; // missing: transparent
  c.putImageData(made, 0, 0);
  return image;
};

LW.heatLines = (c, gutter, sx, sy, wide, tall, cell) => {
  c.strokeStyle = LW.colour("--panel"); c.lineWidth = 1;
  c.beginPath();
  for (let i = Math.ceil(sx); i <= sx + wide; i++) { const x = gutter.left + (i - sx) * cell; c.moveTo(x, gutter.top); c.lineTo(x, gutter.top + tall * cell); }
  for (let i = Math.ceil(sy); i <= sy + tall; i++) { const y = gutter.top + (i - sy) * cell; c.moveTo(gutter.left, y); c.lineTo(gutter.left + wide * cell, y); }
  c.stroke();
};

LW.heatText = (c, gutter, sx, sy, wide, tall, cell, columns, values, unit, level, lut) => {
  c.font = "12px system-ui, sans-serif"; c.textAlign = "center"; c.textBaseline = "middle";
  for (let row = Math.floor(sy); row < sy + tall; row++) for (let column = Math.floor(sx); column < sx + wide; column++) {
    const v = values[row * columns + column];
    if (v !== v) continue;
    const [r, g, b] = lut[level(v)];
    c.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 125 ? "#111" : "#fff";
    const text = LW.text(v, unit, 3);
    c.fillText(c.measureText(text).width < cell - 6 ? text : text.split(" ")[0], gutter.left + (column + 0.5 - sx) * cell, gutter.top + (row + 0.5 - sy) * cell);
  }
};

// Names along both edges, as many as fit without overlap.
LW.heatNames = (c, gutter, sx, sy, wide, tall, cell, data) => {
  c.font = "11px system-ui, sans-serif"; c.fillStyle = LW.colour("--quiet"); c.textBaseline = "middle";
  const widest = Math.max(...data.columns.slice(0, 200).map((n) => c.measureText(n).width)) + 10;
  const every = (room) => Math.max(1, Math.ceil(room / cell));
  c.textAlign = "right";
  for (let i = Math.floor(sy), step = every(14); i < sy + tall; i++) {
    const y = gutter.top + (i + 0.5 - sy) * cell;
    if (i % step === 0 && y > gutter.top - 2) c.fillText(data.rows[i], gutter.left - 6, y, gutter.left - 8);
  }
  c.textAlign = "center";
  for (let i = Math.floor(sx), step = every(widest); i < sx + wide; i++) {
    const x = gutter.left + (i + 0.5 - sx) * cell;
    const right = x + c.measureText(data.columns[i]).width / 2;
    if (i % step === 0 && x > gutter.left - 2 && right < gutter.left + wide * cell + 4) c.fillText(data.columns[i], x, gutter.top / 2);
  }
};

LW.heatTools = (tools, zoom, reset, least, most, anchors, any) => {
  for (const [label, title, act] of [["+", "Zoom in", () => zoom(1.6)], ["−", "Zoom out", () => zoom(1 / 1.6)], ["Fit", "Show all cells", reset]]) {
    const button = LW.element("button", tools, "", label);
    button.type = "button"; button.title = title; button.setAttribute("aria-label", title);
    button.addEventListener("click", act);
  }
  if (!any) return;
  const scale = LW.element("span", tools, "scale", "");
  LW.element("span", scale, "", least.filter(Boolean).join(" "));
  LW.element("i", scale).style.background = `linear-gradient(90deg, ${anchors.join(",")})`;
  LW.element("span", scale, "", most.filter(Boolean).join(" "));
};

LW.heatInput = (port, canvas, map) => {
  let drag = null;
  port.tabIndex = 0;
  port.setAttribute("role", "group");
  port.addEventListener("scroll", map.ask);
  port.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    map.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => map.zoom(2, event.offsetX, event.offsetY));
  canvas.addEventListener("mousedown", (event) => { drag = { x: event.clientX + port.scrollLeft, y: event.clientY + port.scrollTop }; });
  addEventListener("mouseup", () => { drag = null; });
  canvas.addEventListener("mousemove", (event) => {
    if (drag) { port.scrollLeft = drag.x - event.clientX; port.scrollTop = drag.y - event.clientY; }
    map.point(map.under(event), event.clientX, event.clientY);
  });
  canvas.addEventListener("mouseleave", () => map.point(null));
  port.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) { event.preventDefault(); map.move(...step); }
    if (event.key === "+" || event.key === "=") map.zoom(1.6);
    if (event.key === "-") map.zoom(1 / 1.6);
  });
};
