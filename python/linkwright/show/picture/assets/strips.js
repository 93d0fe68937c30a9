// Below the network of a scene: links over time and ranks over time, which share a range.
const KEYS = "Arrow keys move the time, plus and minus change the range, 0 shows the whole time.";

class Panel extends Network {
  constructor(deck, scene, parent, many) {
    super(deck, scene, parent, many);
    if (!scene.time) return;
    element("p", this.box, "lwp-label", `Links over time${this.rowsNote()}`);
    this.heat = this.canvas("lwp-heat", `How busy links are, over time. ${KEYS}`);
    element("p", this.box, "lwp-label", `Ranks over time${scene.time.note ? `: ${scene.time.note}` : ""}`);
    this.ranks = this.canvas("lwp-ranks", `What ranks do, over time: send, receive, wait, reduce. ${KEYS}`);
    for (const strip of [this.heat, this.ranks]) {
      this.brush(strip);
      strip.addEventListener("pointerleave", () => this.deck.untold());
      strip.addEventListener("keydown", (event) => this.move(event));
    }
  }

  rowsNote() {
    return this.order.length < this.scene.time.channels.length ? `: the ${this.order.length} busiest of ${this.scene.time.channels.length.toLocaleString("en")}` : "";
  }

  layOut() {
    super.layOut();
    if (!this.scene.time) return;
    const rows = this.scene.time.ranks.length, width = this.box.clientWidth;
    this.rowTall = Math.max(2, Math.min(18, 320 / rows));
    this.pens.heat = fit(this.heat, width, Math.max(1, this.order.length) * 10 + 18);
    this.pens.ranks = fit(this.ranks, width, rows * this.rowTall + 18);
    this.strips();
  }

  draw() {
    super.draw();
    if (this.scene.time) this.cursors();
  }

  // The two strips as they are between changes of range and size; the cursor is drawn over them.
  strips() {
    const { time: found } = this.scene, colours = this.deck.colours;
    const copy = (canvas) => Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    this.heatLayer = copy(this.heat);
    this.ranksLayer = copy(this.ranks);
    const wide = this.box.clientWidth, dense = this.heat.width / wide;
    const pens = [this.heatLayer, this.ranksLayer].map((layer) => layer.getContext("2d"));
    for (const pen of pens) { pen.scale(dense, dense); pen.fillStyle = colours.ground; pen.fillRect(0, 0, wide, 1e4); }
    this.heatRows(pens[0], wide, found, colours);
    this.rankRows(pens[1], wide, found, colours);
  }

  heatRows(pen, wide, found, colours) {
    const [from, to] = this.deck.view, plot = wide - GUTTER, each = found.bin_us;
    this.order.forEach((channel, row) => {
      this.words(pen, this.fitted(found.channels[channel][0]), GUTTER - 6, row * 10 + 5, 9, "right", colours.quiet);
      let start = this.bin(from);
      const last = Math.min(found.bins, Math.ceil(to / each));
      for (let bin = start; bin <= last; bin++) {
        const ends = bin === last || this.step(this.busy[channel * found.bins + bin] / 255) !== this.step(this.busy[channel * found.bins + start] / 255);
        if (!ends) continue;
        const load = this.busy[channel * found.bins + start] / 255;
        if (load > 0) {
          const x = Math.max(0, ((start * each - from) / (to - from)) * plot), end = Math.min(plot, ((bin * each - from) / (to - from)) * plot);
          pen.fillStyle = colours.load[this.step(load)];
          pen.fillRect(GUTTER + x, row * 10 + 0.5, end - x + 0.3, 9);
        }
        start = bin;
      }
    });
    this.axis(pen, wide, this.order.length * 10);
  }

  fitted(name) { return name.length > 30 ? `${name.slice(0, 14)}…${name.slice(-15)}` : name; }

  rankRows(pen, wide, found, colours) {
    const [from, to] = this.deck.view, plot = wide - GUTTER, tall = this.rowTall, every = Math.ceil(9 / tall);
    found.ranks.forEach(([, name, first], row) => {
      if (row % every === 0) this.words(pen, this.fitted(name), GUTTER - 6, row * tall + Math.max(tall, 9) / 2, Math.min(11, Math.max(9, tall * 0.8)), "right", colours.quiet);
      const end = row + 1 < found.ranks.length ? found.ranks[row + 1][2] : this.from.length;
      for (let k = first; k < end; k++) {
        if (this.to[k] <= from || this.from[k] >= to) continue;
        const x = Math.max(0, ((this.from[k] - from) / (to - from)) * plot), x2 = Math.min(plot, ((this.to[k] - from) / (to - from)) * plot);
        // Waiting is low as well as pale, so that it is told without its colour.
        const low = STATES[this.state[k]] === "wait" ? 0.35 : 0;
        pen.fillStyle = colours[STATES[this.state[k]]];
        pen.fillRect(GUTTER + x, row * tall + tall * low, Math.max(0.5, x2 - x), tall * (1 - 2 * low) - (tall > 5 ? 1 : 0));
      }
    });
    if (this.deck.showPath) this.pathRows(pen, plot, found, colours);
    this.axis(pen, wide, found.ranks.length * tall);
  }

  pathRows(pen, plot, found, colours) {
    const [from, to] = this.deck.view, x = (us) => GUTTER + Math.min(plot, Math.max(0, ((us - from) / (to - from)) * plot));
    const rows = new Map(found.ranks.map(([rank], row) => [rank, (row + 0.5) * this.rowTall]));
    pen.beginPath();
    for (const [start, end, a, b] of found.path) {
      const y = rows.get(a), there = rows.get(b);
      if (end < from || start > to || y === undefined || there === undefined) continue;
      pen.moveTo(x(start), y);
      pen.lineTo(x(end), there);
    }
    const bold = found.path.length > 100 ? 0.5 : 1;
    for (const [colour, wide] of [[colours.ground, 4.5 * bold], [colours.path, 2 * bold]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = wide;
      pen.stroke();
    }
  }

  axis(pen, wide, top) {
    const [from, to] = this.deck.view;
    const last = wide - GUTTER < 320 ? 2 : 4;  // as many as there is room for
    for (let k = 0; k <= last; k++) {
      const align = k === 0 ? "left" : k === last ? "right" : "center", x = GUTTER + ((wide - GUTTER) * k) / last;
      this.words(pen, time(from + ((to - from) * k) / last), x, top + 10, 10, align, this.deck.colours.quiet);
    }
  }

  cursors() {
    const { view, now, average, colours, drag } = this.deck;
    for (const [name, layer] of [["heat", this.heatLayer], ["ranks", this.ranksLayer]]) {
      const pen = this.pens[name], canvas = this[name], wide = this.box.clientWidth, tall = canvas.clientHeight - 18;
      const x = (us) => GUTTER + ((us - view[0]) / (view[1] - view[0])) * (wide - GUTTER);
      pen.save();
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.drawImage(layer, 0, 0);
      pen.restore();
      if (!average) { pen.fillStyle = colours.ink; pen.fillRect(x(now) - 0.75, 0, 1.5, tall); }
      if (drag) { pen.fillStyle = colours.path; pen.globalAlpha = 0.2; pen.fillRect(x(Math.min(...drag)), 0, Math.abs(x(drag[1]) - x(drag[0])), tall); pen.globalAlpha = 1; }
    }
  }

  // Dragging over a strip chooses a range of time; a click a moment.
  brush(canvas) {
    const at = (event) => {
      const box = canvas.getBoundingClientRect(), [from, to] = this.deck.view;
      return from + Math.min(1, Math.max(0, (event.clientX - box.left - GUTTER) / (box.width - GUTTER))) * (to - from);
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.deck.drag = [at(event), at(event)]; });
    canvas.addEventListener("pointermove", (event) => {
      if (this.deck.drag) { this.deck.drag[1] = at(event); this.deck.redraw(); } else this.hoverStrip(canvas, event, at(event));
    });
    canvas.addEventListener("pointerup", (event) => {
      const range = this.deck.drag;
      this.deck.drag = null;
      if (!range) return;
      range[1] = at(event);
      range.sort((a, b) => a - b);
      if (range[1] - range[0] > (this.deck.view[1] - this.deck.view[0]) * 0.01) this.deck.look(range);
      else this.deck.seek(range[0]);
    });
  }

  // The same by keyboard, around the moment that is shown.
  move(event) {
    const { deck } = this, [from, to] = deck.view, wide = to - from;
    const step = { ArrowLeft: -0.01, ArrowRight: 0.01 }[event.key], zoom = { "+": 0.25, "-": 1 }[event.key];
    if (step) deck.seek(Math.min(to, Math.max(from, deck.now + step * wide)));
    else if (zoom) {
      const half = Math.min(deck.whole / 2, zoom * wide), middle = Math.min(deck.whole - half, Math.max(half, deck.now));
      deck.look([middle - half, middle + half]);
    } else if (event.key === "0") deck.look([0, deck.whole]);
    else return;
    event.preventDefault();
  }

  hoverStrip(canvas, event, us) {
    const y = event.clientY - canvas.getBoundingClientRect().top, found = this.scene.time;
    if (canvas === this.heat) {
      const channel = this.order[Math.floor(y / 10)];
      if (channel === undefined) return this.deck.untold();
      const target = found.channels[channel][1];
      this.pick(target >= 0 ? { link: target } : target < -1 ? { node: -2 - target } : null);
      return this.deck.tell(event.clientX, event.clientY, found.channels[channel][0], [...this.channelWords(channel, us)]);
    }
    const rank = found.ranks[Math.floor(y / this.rowTall)];
    if (!rank) return this.deck.untold();
    this.pick(this.rank.has(rank[0]) ? { node: this.rank.get(rank[0]) } : null);
    const state = this.stateOf(rank[0], us);
    this.deck.tell(event.clientX, event.clientY, rank[1], [`${time(us)}: ${state < 0 ? "nothing" : STATES[state]}`, this.waiting(us)]);
  }

  channelWords(channel, us) {
    const [, , , carried, mean] = this.scene.time.channels[channel];
    const now = us < this.scene.time.span_us ? this.busy[channel * this.scene.time.bins + this.bin(us)] / 255 : 0;
    return [`busy ${percent(now)} at ${time(us)}, ${percent(mean)} on average`, carried ? `${bytes(carried)} in all` : ""];
  }

  waiting(us) {
    if (!this.scene.time) return "";
    const found = this.scene.time.ranks.filter(([rank]) => this.stateOf(rank, us) === 2).map(([, name]) => name);
    if (!found.length) return "no rank waits";
    return `${found.length} of ${this.scene.time.ranks.length} ranks wait: ${found.slice(0, 4).join(", ")}${found.length > 4 ? ", …" : ""}`;
  }
}
