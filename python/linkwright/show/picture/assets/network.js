// One scene: its network, drawn for a moment or on average, and what the pointer finds there.
class Network {
  constructor(deck, scene, parent, many) {
    this.deck = deck;
    this.scene = scene;
    this.box = element("div", parent, "lwp-panel");
    if (many) this.head = element("p", this.box, "lwp-name", scene.title);
    this.net = this.canvas("lwp-net", `${scene.about}. Arrow keys go through the links.`);
    this.prepare();
    this.net.addEventListener("pointermove", (event) => this.hoverNet(event));
    this.net.addEventListener("keydown", (event) => this.walk(event));
    this.net.addEventListener("pointerleave", () => this.deck.untold());
  }

  canvas(className, label) {
    const made = element("canvas", this.box, className);
    made.tabIndex = 0;
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", label);
    return made;
  }

  // Channels by link, direction and node; sums along the bins, so that the mean of a range is one difference.
  prepare() {
    const { links, nodes, time: found } = this.scene;
    this.byLink = links.map(() => [[], []]);
    this.byNode = nodes.map(() => []);
    this.rank = new Map((found?.at || []).map((node, rank) => [rank, node]));
    this.order = [];
    this.thin = this.thickness();
    this.many = links.length > MANY_LINKS;  // one line for both directions, as thin and as plain as can be
    if (!found) return;
    found.channels.forEach(([, target, direction], k) => {
      if (target >= 0) this.byLink[target][direction].push(k);
      else if (target < -1) this.byNode[-2 - target].push(k);
    });
    this.order = found.channels.map((_, k) => k).filter((k) => found.channels[k][4] > 0);
    this.order.sort((a, b) => found.channels[b][4] - found.channels[a][4] || a - b).splice(HEAT_ROWS);
  }

  async load() {
    const found = this.scene.time;
    if (!found) return;
    const [busy, states] = await Promise.all([unpack(found.busy), unpack(found.states)]);
    this.busy = new Uint8Array(busy);
    const count = found.intervals;
    this.from = new Float32Array(states, 0, count);
    this.to = new Float32Array(states, 4 * count, count);
    this.state = new Uint8Array(states, 8 * count, count);
    this.sums = new Float32Array(found.channels.length * (found.bins + 1));
    for (let k = 0; k < found.channels.length; k++) {
      const at = k * (found.bins + 1);
      for (let bin = 0; bin < found.bins; bin++) this.sums[at + bin + 1] = this.sums[at + bin] + this.busy[k * found.bins + bin];
    }
  }

  thickness() {
    let smallest = 26;
    for (const node of this.scene.nodes) smallest = Math.min(smallest, node[5], node[6]);
    return Math.max(0.2, Math.min(1, 14 / Math.sqrt(this.scene.links.length + 1), smallest / 26));
  }

  bin(us) {
    const { bins, bin_us: each } = this.scene.time;
    return Math.min(bins - 1, Math.max(0, Math.floor(us / each)));
  }

  // The busy share of a channel: now, or on average over the range that is shown.
  share(channel) {
    const { bins, span_us: span } = this.scene.time, deck = this.deck;
    if (!deck.average) return deck.now >= span ? 0 : this.busy[channel * bins + this.bin(deck.now)] / 255;
    const from = this.bin(deck.view[0]), to = this.bin(deck.view[1] - 1e-9) + 1, at = channel * (bins + 1);
    return (this.sums[at + to] - this.sums[at + from]) / (to - from) / 255;
  }

  most(channels) {
    let found = 0;
    for (const channel of channels) found = Math.max(found, this.share(channel));
    return found;
  }

  layOut() {
    const width = this.box.clientWidth;
    this.scale = width / this.scene.width;
    this.pens = { net: fit(this.net, width, this.scene.height * this.scale, this.many ? 1 : 2) };
    this.drawn = null;
    this.layers();
  }

  // What does not move: frames, then boxes and their names.
  layers() {
    const { frames, nodes } = this.scene, colours = this.deck.colours;
    const layer = () => {
      const canvas = document.createElement("canvas");
      canvas.width = this.net.width;
      canvas.height = this.net.height;
      const pen = canvas.getContext("2d");
      pen.scale(this.net.width / this.scene.width, this.net.height / this.scene.height);
      return pen;
    };
    const back = layer(), front = layer();
    back.lineWidth = front.lineWidth = 1;
    for (const [name, x, y, wide, tall] of frames) {
      back.fillStyle = colours.frame;
      back.strokeStyle = colours.line;
      back.fillRect(x - wide / 2, y - tall / 2, wide, tall);
      back.strokeRect(x - wide / 2, y - tall / 2, wide, tall);
      this.words(front, name, x - wide / 2 + 5, y - tall / 2 + 9, Math.min(12, tall * 0.18), "left", colours.quiet);
    }
    front.textBaseline = "middle";
    for (const [, kind, label, x, y, wide, tall] of nodes) {
      if (kind === "frame") continue;
      front.fillStyle = kind === "endpoint" || kind === "group" ? colours.node : colours.switch;
      front.strokeStyle = colours.quiet;
      front.setLineDash(kind === "memory" ? [3, 2] : []);
      front.fillRect(x - wide / 2, y - tall / 2, wide, tall);
      if (wide > 4) front.strokeRect(x - wide / 2, y - tall / 2, wide, tall);
      this.words(front, label, x, y, Math.min(13, tall * 0.6, (1.7 * wide) / Math.max(1, label.length)), "center", colours.ink);
    }
    this.back = back.canvas;
    this.front = front.canvas;
  }

  words(pen, text, x, y, size, align, colour) {
    if (size < 6 || !text) return;
    pen.fillStyle = colour;
    pen.font = `${size}px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
    pen.textAlign = align;
    pen.textBaseline = "middle";
    pen.fillText(text, x, y);
  }

  // What the network depends on: while it is the same, frames need no drawing.
  looks() {
    const { average, view, now, showPath } = this.deck, found = this.scene.time;
    if (!found) return "";
    const step = showPath && !average ? found.path.findIndex(([from, to]) => now >= from && now < to) : 0;
    const moment = average ? view.join(" ") : now >= found.span_us ? "end" : this.bin(now);
    return [this.scale, average, moment, step, showPath, JSON.stringify(this.picked)].join("|");
  }

  draw() {
    const drawn = this.looks();
    if (drawn && drawn === this.drawn) return;
    this.drawn = drawn;
    const pen = this.pens.net, { width, height } = this.scene, colours = this.deck.colours;
    pen.save();
    pen.scale(this.scale, this.scale);
    pen.fillStyle = colours.ground;
    pen.fillRect(0, 0, width, height);
    this.links(pen, 0, this.scene.behind);
    pen.drawImage(this.back, 0, 0, width, height);
    this.links(pen, this.scene.behind, this.scene.links.length);
    pen.drawImage(this.front, 0, 0, width, height);
    if (this.scene.time) this.loads(pen);
    if (this.scene.time) this.path(pen);
    if (this.picked) this.outline(pen);
    pen.restore();
  }

  // One stroke per step of load: what costs time is the number of strokes, not of segments.
  links(pen, first, end) {
    const { links, time: found } = this.scene, colours = this.deck.colours;
    const classes = found ? Array.from({ length: STEPS }, () => []) : Array.from({ length: 8 }, () => []);
    for (let k = first; k < end; k++) {
      const [there, back] = this.byLink[k];
      if (!found) classes[Math.min(7, links[k][2])].push([links[k][4], 0]);
      else if (!there.length && !back.length) classes[0].push([links[k][4], 0]);
      else if (this.many) classes[this.step(Math.max(this.most(there), this.most(back)))].push([links[k][4], 0]);
      else {
        if (there.length) classes[this.step(this.most(there))].push([links[k][4], back.length ? 1 : 0]);
        if (back.length) classes[this.step(this.most(back))].push([links[k][4], there.length ? -1 : 0]);
      }
    }
    pen.lineCap = this.many ? "butt" : "round";
    classes.forEach((paths, step) => {
      if (!paths.length) return;
      pen.lineWidth = (found ? 0.9 + step * 0.62 : 2.4) * this.thin;
      pen.strokeStyle = found ? colours.load[step] : colours.kind[step];
      pen.beginPath();
      for (const [path, side] of paths) this.trace(pen, path, side * (1.2 + step * 0.1) * this.thin * 1.5);
      pen.stroke();
    });
  }

  // As colours.py has it: the first step is idle.
  step(share) { return share < 0.002 ? 0 : Math.min(STEPS - 1, 1 + Math.floor(share * (STEPS - 1))); }

  // A path, moved aside by `aside`: links have a side per direction, as roads do.
  trace(pen, path, aside) {
    const last = path.length - 2, length = Math.hypot(path[last] - path[0], path[last + 1] - path[1]) || 1;
    const x = (-(path[last + 1] - path[1]) / length) * aside, y = ((path[last] - path[0]) / length) * aside;
    pen.moveTo(path[0] + x, path[1] + y);
    if (path.length === 6) pen.quadraticCurveTo(path[2] + x, path[3] + y, path[4] + x, path[5] + y);
    else pen.lineTo(path[2] + x, path[3] + y);
    if (path.length === 8) { pen.moveTo(path[4] + x, path[5] + y); pen.lineTo(path[6] + x, path[7] + y); }
  }

  // Ports fill small boxes and underline large ones; the upper edge of an endpoint says what its rank does.
  loads(pen) {
    const { nodes } = this.scene, colours = this.deck.colours;
    const steps = Array.from({ length: STEPS }, () => []);
    this.byNode.forEach((channels, k) => { if (channels.length) steps[this.step(this.most(channels))].push(k); });
    steps.forEach((found, step) => {
      pen.fillStyle = colours.load[step];
      for (const k of found) {
        const [, , label, x, y, wide, tall] = nodes[k];
        if (label && tall > 9 && !step) continue;
        if (label && tall > 9) pen.fillRect(x - wide / 2 + 1, y + tall / 2 - 4, wide - 2, 3);
        else pen.fillRect(x - wide / 2, y - tall / 2, wide, tall);
      }
    });
    if (this.deck.average) return;
    for (const [rank, k] of this.rank) {
      const [, kind, label, x, y, wide, tall] = nodes[k];
      if (kind !== "endpoint") continue;
      const state = this.stateOf(rank, this.deck.now);
      if (state < 0 || !label || wide < 12) continue;
      pen.fillStyle = colours[STATES[state]];
      pen.fillRect(x - wide / 2 + 0.5, y - tall / 2 + 0.5, wide - 1, Math.min(4.5, tall / 4));
    }
  }

  // What a rank does at a time: a number of STATES, -1 for nothing.
  stateOf(rank, us) {
    this.rows ||= new Map(this.scene.time.ranks.map(([number], row) => [number, row]));
    const row = this.rows.get(rank);
    if (row === undefined) return -1;
    let low = this.scene.time.ranks[row][2], high = row + 1 < this.scene.time.ranks.length ? this.scene.time.ranks[row + 1][2] : this.from.length;
    const end = low;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.from[middle] <= us) low = middle + 1; else high = middle;
    }
    for (let k = low - 1; k >= end && k > low - 6; k--) if (us < this.to[k]) return this.state[k];
    return -1;
  }

  // The critical path: the step of now, or all steps of the range.
  path(pen) {
    const { path } = this.scene.time, { view, now, average, colours } = this.deck;
    if (!this.deck.showPath) return;
    pen.save();
    pen.strokeStyle = pen.fillStyle = colours.path;
    pen.lineWidth = average ? 1.6 : 3.2;
    pen.setLineDash(average ? [5, 4] : []);
    const drawn = new Set();
    for (const [from, to, a, b] of path) {
      if (average ? to < view[0] || from > view[1] : now < from || now >= to) continue;
      const start = this.scene.nodes[this.rank.get(a)], end = this.scene.nodes[this.rank.get(b)], key = `${a} ${b}`;
      if (!start || !end || drawn.has(key)) continue;
      drawn.add(key);
      if (start === end) pen.strokeRect(start[3] - start[5] / 2 - 3, start[4] - start[6] / 2 - 3, start[5] + 6, start[6] + 6);
      else this.arrow(pen, start, end);
    }
    pen.restore();
  }

  // From the edge of one box to that of the other, beside the straight line between them.
  arrow(pen, start, end) {
    const x = (start[3] + end[3]) / 2 - (end[4] - start[4]) * 0.12, y = (start[4] + end[4]) / 2 + (end[3] - start[3]) * 0.12;
    const [x1, y1] = this.rim(start, x, y), [x2, y2] = this.rim(end, x, y);
    const angle = Math.atan2(y2 - y, x2 - x), size = 9;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.quadraticCurveTo(x, y, x2, y2);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x2, y2);
    for (const turn of [2.7, -2.7]) pen.lineTo(x2 + size * Math.cos(angle + turn), y2 + size * Math.sin(angle + turn));
    pen.fill();
  }

  // Where the line from the middle of a box to (x, y) leaves it.
  rim([, , , cx, cy, wide, tall], x, y) {
    const dx = x - cx || 1e-9, dy = y - cy || 1e-9, share = Math.min(1, (wide / 2 + 2) / Math.abs(dx), (tall / 2 + 2) / Math.abs(dy));
    return [cx + dx * share, cy + dy * share];
  }

  outline(pen) {
    pen.save();
    pen.strokeStyle = this.deck.colours.ink;
    pen.lineWidth = 2;
    const { link, node } = this.picked;
    pen.beginPath();
    if (link !== undefined) { pen.setLineDash([2, 2]); this.trace(pen, this.scene.links[link][4], 0); }
    else { const [, , , x, y, wide, tall] = this.scene.nodes[node]; pen.rect(x - wide / 2 - 1, y - tall / 2 - 1, wide + 2, tall + 2); }
    pen.stroke();
    pen.restore();
  }

  pick(found) {
    if (JSON.stringify(found) === JSON.stringify(this.picked)) return;
    this.picked = found;
    this.deck.redraw();
  }

  hoverNet(event) {
    const box = this.net.getBoundingClientRect();
    const x = (event.clientX - box.left) / this.scale, y = (event.clientY - box.top) / this.scale;
    const found = this.under(x, y);
    this.pick(found);
    if (found) this.deck.tell(event.clientX, event.clientY, ...this.about(found));
    else this.deck.untold();
  }

  under(x, y) {
    const { nodes, links } = this.scene;
    const node = nodes.findIndex(([, kind, , cx, cy, wide, tall]) => kind !== "frame" && Math.abs(x - cx) <= wide / 2 + 1 && Math.abs(y - cy) <= tall / 2 + 1);
    if (node >= 0) return { node };
    let best = null, least = 7;
    links.forEach(([, , , , path], link) => {
      const far = this.distance(path, x, y);
      if (far < least) { least = far; best = { link }; }
    });
    return best;
  }

  distance(path, x, y) {
    const segment = (x1, y1, x2, y2) => {
      const dx = x2 - x1, dy = y2 - y1, along = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
      return Math.hypot(x - x1 - along * dx, y - y1 - along * dy);
    };
    if (path.length === 4) return segment(...path);
    if (path.length === 8) return Math.min(segment(...path.slice(0, 4)), segment(...path.slice(4)));
    let least = Infinity, [px, py] = path;
    for (let k = 1; k <= 8; k++) {
      const t = k / 8, u = 1 - t;
      const qx = u * u * path[0] + 2 * u * t * path[2] + t * t * path[4], qy = u * u * path[1] + 2 * u * t * path[3] + t * t * path[5];
      least = Math.min(least, segment(px, py, qx, qy));
      [px, py] = [qx, qy];
    }
    return least;
  }

  // Title and lines about a link or a node.
  about({ link, node }) {
    const { nodes, links, classes, time: found } = this.scene, us = this.deck.now;
    if (link !== undefined) {
      const [a, b, kind, speed] = links[link], lines = [`${classes[kind]}${speed ? `, ${rate(speed)} each way` : ""}`];
      if (found) this.byLink[link].forEach((channels) => { for (const k of channels.slice(0, 4)) lines.push(`${found.channels[k][0]}: ${this.channelWords(k, us).filter(Boolean).join("; ")}`); });
      if (found) lines.push(this.waiting(us));
      return [`${nodes[a][0]} – ${nodes[b][0]}`, lines];
    }
    const [name, kind, , , , , , rank] = nodes[node], lines = [rank >= 0 && kind === "endpoint" ? `rank ${rank}` : kind];
    if (found && rank >= 0) { const state = this.stateOf(rank, us); lines.push(`${time(us)}: ${state < 0 ? "nothing" : STATES[state]}`); }
    if (found) for (const k of this.byNode[node].slice(0, 4)) lines.push(`${found.channels[k][0]}: ${this.channelWords(k, us).filter(Boolean).join("; ")}`);
    if (found) lines.push(this.waiting(us));
    return [name, lines];
  }

  // Arrow keys on the network go from link to link; what is told is also read out.
  walk(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !this.scene.links.length) return;
    event.preventDefault();
    const count = this.scene.links.length, before = this.picked?.link ?? (step > 0 ? -1 : 0);
    this.pick({ link: (before + step + count) % count });
    const box = this.net.getBoundingClientRect(), path = this.scene.links[this.picked.link][4];
    this.deck.tell(box.left + path[0] * this.scale, box.top + path[1] * this.scale, ...this.about(this.picked));
  }
}
