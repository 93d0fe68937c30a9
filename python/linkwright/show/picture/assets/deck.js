// All scenes of a figure, at one time; its controls.
class Deck {
  constructor(figure) {
    this.figure = figure;
    this.scenes = JSON.parse(figure.querySelector("script").textContent);
    this.timed = this.scenes.some((scene) => scene.time);
    this.whole = Math.max(...this.scenes.map((scene) => scene.time?.span_us || 0));
    this.view = [0, this.whole];
    this.now = 0;
    this.average = true;
    this.showPath = true;
    this.drag = null;
    this.bar = figure.querySelector(".lwp-bar");
    this.tip = element("div", figure, "lwp-tip");
    this.tip.hidden = true;
    this.live = element("p", figure, "lwp-read");
    this.live.setAttribute("aria-live", "polite");
    const panels = figure.querySelector(".lwp-panels");
    panels.classList.toggle("lwp-several", this.scenes.length > 1);
    this.panels = this.scenes.map((scene) => new Panel(this, scene, panels, this.scenes.length > 1));
    if (this.timed) this.controls();
    this.ready = this.begin();
  }

  async begin() {
    await Promise.all(this.panels.map((panel) => panel.load()));
    this.recolour();
    new ResizeObserver(() => this.layOut()).observe(this.figure);
    const recolour = () => this.recolour();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    new MutationObserver(recolour).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    this.figure.dataset.ready = "yes";
  }

  controls() {
    const button = (words, title, act) => { const made = element("button", this.bar, "", words); made.type = "button"; made.title = title; made.addEventListener("click", act); return made; };
    this.play = button("Play", "Play or pause (space)", () => this.toggle());
    this.slider = element("input", this.bar, "lwp-slider");
    Object.assign(this.slider, { type: "range", min: 0, max: 1000, value: 0, step: 1 });
    this.slider.setAttribute("aria-label", "Time");
    this.slider.addEventListener("input", () => this.seek(this.view[0] + (this.slider.value / 1000) * (this.view[1] - this.view[0])));
    this.clock = element("output", this.bar, "lwp-clock", "average");
    this.mean = button("Average", "Loads on average over the range shown", () => { this.pause(); this.average = !this.average; this.redraw(); });
    this.all = button("Whole time", "Show the whole time again", () => this.look([0, this.whole]));
    this.chain = button("Critical path", "Show or hide the critical path", () => { this.showPath = !this.showPath; for (const panel of this.panels) if (panel.scene.time) panel.strips(); this.redraw(); });
  }

  toggle() { if (this.playing) this.pause(); else this.start(); }

  start() {
    this.average = false;
    this.playing = true;
    if (this.now >= this.view[1] || this.now < this.view[0]) this.now = this.view[0];
    let before = performance.now();
    const step = (at) => {
      if (!this.playing) return;
      this.now += ((at - before) / PLAY_MS) * (this.view[1] - this.view[0]);
      before = at;
      if (this.now >= this.view[1]) this.now = this.view[0];
      this.draw();
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  pause() { this.playing = false; this.redraw(); }

  seek(us) { this.average = false; this.now = us; this.redraw(); }

  look(range) {
    this.view = range;
    this.now = Math.min(range[1], Math.max(range[0], this.now));
    for (const panel of this.panels) if (panel.scene.time) panel.strips();
    this.redraw();
  }

  layOut() {
    const width = this.figure.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    for (const panel of this.panels) panel.layOut();
    this.draw();
  }

  recolour() {
    this.colours = palette(this.figure);
    this.width = 0;
    this.layOut();
  }

  // At most once per frame of the screen.
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    if (!this.width) return;
    for (const panel of this.panels) panel.draw();
    if (!this.timed) return;
    this.slider.value = Math.round((1000 * (this.now - this.view[0])) / (this.view[1] - this.view[0]));
    const words = this.average ? `average of ${time(this.view[1] - this.view[0])}` : time(this.now);
    if (this.clock.textContent !== words) { this.clock.textContent = words; this.slider.setAttribute("aria-valuetext", words); }
    this.play.textContent = this.playing ? "Pause" : "Play";
    this.mean.setAttribute("aria-pressed", this.average);
    this.chain.setAttribute("aria-pressed", this.showPath);
    this.all.disabled = this.view[0] === 0 && this.view[1] === this.whole;
  }

  tell(x, y, title, lines) {
    const words = `${title}. ${lines.filter(Boolean).join(". ")}`;
    if (this.told !== words) {
      this.told = this.live.textContent = words;
      this.tip.replaceChildren();
      element("b", this.tip, "", title);
      for (const line of lines) if (line) element("span", this.tip, "", line);
    }
    this.tip.hidden = false;
    const { width, height } = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, x + 16 + width > innerWidth ? x - width - 12 : x + 16)}px`;
    this.tip.style.top = `${Math.max(4, y + 16 + height > innerHeight ? y - height - 12 : y + 16)}px`;
  }

  untold() { this.tip.hidden = true; for (const panel of this.panels) panel.pick(null); }
}

const begin = () => { for (const figure of document.querySelectorAll("figure.lwp")) LWPicture.decks.push(new Deck(figure)); };
if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin); else begin();
