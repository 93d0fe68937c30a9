// Moves the picture of a scene (picture/scene.py, times.py): links by load, over time; below, links x time and ranks x time.
// A deck is one <figure>: one set of controls and one panel per scene, all at the same time of their simulations.
const STATES = ["send", "receive", "wait", "reduce"];
const GUTTER = 168, STEPS = 8, PLAY_MS = 9000, HEAT_ROWS = 40, MANY_LINKS = 1000;

const element = (tag, parent, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
const prefixed = (value, steps) => {
  const [factor, name] = steps.find(([f]) => Math.abs(value) >= f) || steps[steps.length - 1];
  return `${Number((value / factor).toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 3 })} ${name}`;
};
const time = (us) => prefixed(us, [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]]);
const bytes = (n) => prefixed(n, [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
const rate = (n) => prefixed(n, [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1, "B/s"]]);
const percent = (share) => `${Math.round(share * 100)} %`;

const unpack = async (text) => {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
};

const palette = (figure) => {
  const style = getComputedStyle(figure);
  const of = (name) => style.getPropertyValue(`--lwp-${name}`).trim();
  const named = Object.fromEntries(["ground", "ink", "quiet", "line", "frame", "node", "switch", "path", ...STATES].map((n) => [n, of(n)]));
  return { ...named, load: Array.from({ length: STEPS }, (_, k) => of(`b${k}`)), kind: Array.from({ length: 8 }, (_, k) => of(`k${k}`)) };
};

// A canvas that keeps its size in pixels of the screen.
const fit = (canvas, width, height, most = 2) => {
  const dense = Math.min(most, Math.max(1, devicePixelRatio || 1));
  canvas.width = Math.max(1, Math.round(width * dense));
  canvas.height = Math.max(1, Math.round(height * dense));
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  return pen;
};
