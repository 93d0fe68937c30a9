// Asks the engine what the form says, and shows its answers. All texts are written as text, never as HTML.
"use strict";
const $ = (id) => document.getElementById(id), form = $("asked"), field = (name) => form.elements[name];
const data = JSON.parse($("data").textContent), UNITS = { "": 0, K: 1, M: 2, G: 3 };
const FIELDS = ["machine", "text", "nodes", "fabric", "without", "degrade", "collective", "algorithm", "size", "ranks", "path", "issue", "schedule"];
const system = matchMedia("(prefers-color-scheme: dark)");
const themed = () => { document.documentElement.dataset.theme = system.matches ? "dark" : "light"; };
system.addEventListener("change", themed);
themed();

function made(tag, text, attributes = {}) {
  const node = Object.assign(document.createElement(tag), attributes);
  if (text !== undefined) node.textContent = text;
  return node;
}

// Four digits, as on the command line.
const digits = (value) => (value >= 1000 ? value.toLocaleString("en", { maximumFractionDigits: 0 }) : value.toPrecision(4));
const time = (ps) => (ps < 1e9 ? `${digits(ps / 1e6)} µs` : ps < 1e12 ? `${digits(ps / 1e9)} ms` : `${digits(ps / 1e12)} s`);
const share = (part) => `${(100 * part).toFixed(1)} %`;
const known = (value) => value !== null && value !== undefined;

// The worker: one request at a time has an answer to wait for.
let worker, waiting = new Map(), number = 0;
function ask(request, more = {}, heard = () => {}) {
  return new Promise((answer) => {
    waiting.set(++number, { answer, heard });
    worker.postMessage({ id: number, request, ...more });
  });
}

function start() {
  const url = URL.createObjectURL(new Blob([JSON.parse($("worker").textContent)], { type: "text/javascript" }));
  const mine = worker = new Worker(url);
  URL.revokeObjectURL(url);
  mine.onmessage = ({ data: { id, ...found } }) => {
    if (found.improved) return waiting.get(id)?.heard(found.improved);
    waiting.get(id)?.answer(found);
    waiting.delete(id);
  };
  mine.onerror = (event) => {
    if (mine !== worker) return;
    const [broken, message] = [[...waiting.values()], event.message || "the engine could not start"];
    stop();
    for (const { answer } of broken) answer({ error: message });
  };
}

async function engine() {
  const packed = Uint8Array.from(atob($("engine").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

let compiled;
async function begin() {
  start();
  const { parts, networks, nodes } = data;
  compiled ??= await engine();
  return ask({ ask: "names" }, { engine: compiled, shelf: { parts, networks, nodes } });
}

let turn = 0, ready;
function stop() {
  worker.terminate();
  waiting.clear();
  turn++;
  search.running = false;
  $("progress").hidden = true;
  ready = begin();
}

// What the form asks for.
const list = (name) => field(name).value.split(",").map((text) => text.trim()).filter(Boolean);
function whole(name) {
  const text = field(name).value.trim();
  if (!text) return null;
  if (!/^\d{1,15}$/.test(text)) throw new Error(`${name} ${text}: is not a whole number; write one, or leave it blank`);
  return Number(text);
}

function size() {
  const text = field("size").value.trim(), match = /^(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?$/i.exec(text);
  const bytes = match && Number(match[1]) * 1024 ** UNITS[match[2].toUpperCase()];
  if (!Number.isSafeInteger(bytes)) throw new Error(`size ${text}: is not a size; write bytes, or 64K, 1M, 8G`);
  return bytes;
}

function asked() {
  return {
    file: `${field("machine").value}.toml`, text: field("text").value, nodes: whole("nodes"), fabric: field("fabric").value.trim(),
    without: list("without"), degrade: list("degrade"), ranks: whole("ranks"), path: field("path").value,
    issue: field("issue").value, schedule: field("schedule").value,
  };
}

// The same as a fragment of the address. A file that nobody edited is named, not copied.
function fragment() {
  const values = new URLSearchParams();
  for (const name of FIELDS) {
    const { value } = field(name);
    if (value && !(name === "text" && value === data.machines[field("machine").value])) values.set(name, value);
  }
  return `#${values}`;
}

function restore() {
  const values = new URLSearchParams(location.hash.slice(1));
  for (const name of FIELDS) {
    if (!values.has(name)) continue;
    field(name).value = values.get(name);
    // Paths are those of the machine, which the engine has not read yet.
    if (name === "path") option(field(name), values.get(name)).selected = true;
    if (name === "machine") shipped();
    if (name === "collective") algorithms();
    if (name === "text" || name === "schedule") field(name).closest("details").open = true;
  }
}

function option(select, value, text = value) {
  select.append(made("option", text, { value }));
  return select.lastChild;
}

function shipped() {
  field("text").value = data.machines[field("machine").value] ?? "";
}

let names;
function algorithms() {
  const its = names.algorithms.filter((one) => one.collective === field("collective").value), select = field("algorithm");
  select.replaceChildren();
  option(select, "", `all ${its.length}`);
  for (const one of its) option(select, one.name).title = one.summary;
}

function paths({ paths: all, path }) {
  const select = field("path"), chosen = select.value;
  select.replaceChildren();
  option(select, "", `${path} (default)`);
  for (const name of all) option(select, name);
  select.value = all.includes(chosen) ? chosen : "";
}

function about(machine) {
  const counted = Object.entries(machine.statuses).map(([status, count]) => `${count} ${status.replace("_", " ")}`);
  $("about").replaceChildren(`${machine.name}: ${machine.summary}. ${machine.ranks} ranks, fabric ${machine.fabric}. Numbers: ${counted.join(", ")}.`);
  if (machine.assumed) $("about").append(made("span", " All rates of links are assumed: these times predict no real machine.", { className: "assumed" }));
}

function row(name, found) {
  const line = made("tr"), pick = made("button", name, { type: "button" });
  pick.addEventListener("click", () => details(name, found, line));
  const limit = made("td", known(found.share) ? share(found.share) : "–", { className: "n" });
  if (found.limit) limit.append(" ", made("small", found.limit.name));
  const cells = [
    made("td"), made("td", time(found.time_ps), { className: "n", title: `${found.time_ps} ps` }),
    made("td", known(found.bus_bytes_per_s) ? `${digits(found.bus_bytes_per_s / 1e9)} GB/s` : "–", { className: "n" }), limit,
    made("td", found.proof.operations.toLocaleString("en") + (found.proof.exact ? "" : ", by fingerprints"), { className: "n" }),
  ];
  cells[0].append(pick);
  line.append(...cells);
  line.dataset.ps = found.time_ps;
  const body = $("times").tBodies[0];
  body.insertBefore(line, [...body.rows].find((other) => Number(other.dataset.ps) > found.time_ps) ?? null);
  $("times").hidden = false;
}

// Show the details of the fastest, or of one with this name.
function chosen(name) {
  const all = [...$("times").querySelectorAll("button")];
  (all.find((one) => one.textContent === name) ?? all[0])?.click();
}

function table(label, heads, rows) {
  const whole = made("table", undefined, { className: "compact" }), head = made("tr"), body = made("tbody"), box = made("div", undefined, { className: "scroll", tabIndex: 0, ariaLabel: label, role: "region" });
  heads.forEach((text, at) => head.append(made("th", text, { scope: "col", className: at ? "n" : "" })));
  for (const cells of rows) {
    body.append(made("tr"));
    cells.forEach((text, at) => body.lastChild.append(made("td", text, { className: at ? "n" : "" })));
  }
  whole.append(made("thead"), body);
  whole.tHead.append(head);
  box.append(whole);
  return [made("h3", label), box];
}

function details(name, found, line) {
  for (const other of $("times").tBodies[0].rows) other.removeAttribute("aria-current");
  line.setAttribute("aria-current", "true");
  const limit = (of) => (one) => [`${one.name}: ${one.what}`, of, time(one.time_ps), share(one.time_ps / found.time_ps)];
  const limits = [...found.limits.map(limit("any algorithm")), ...[found.bound].filter(known).map(limit("this schedule"))];
  const spent = found.critical.filter(([, part]) => part > 0).map(([cause, part]) => [cause, share(part)]);
  const links = found.links.map(([link, bytes, busy, peak]) => [link, bytes.toLocaleString("en"), share(busy), peak]);
  $("details").replaceChildren(
    made("h3", `${found.collective}, ${name}: ${time(found.time_ps)} over ${found.ranks} ranks`),
    ...(found.remark ? [made("p", found.remark, { className: "how" })] : []),
    ...(limits.length ? table("Limits", ["limit", "holds for", "least time", "part of the time"], limits) : []),
    ...table("Critical path", ["spent on", "part"], spent),
    ...(links.length ? table("Busiest links", ["link", "bytes", "busy", "most messages at once"], links) : []),
    made("p", found.idle_links ? `${found.idle_links.toLocaleString("en")} links carry nothing.` : "", { className: "how" }),
  );
  $("details").hidden = false;
}

function refused(all) {
  $("refused").hidden = !all.length;
  $("refused").firstChild.textContent = `${all.length} without a time, and why`;
  $("refused").lastChild.replaceChildren(...all.map(([name, why]) => made("li", `${name}: ${why}`)));
}

function failed(message) {
  $("error").textContent = message;
  $("error").hidden = !message;
}

// Ask the engine of the machine, then let `work` ask for the rest.
async function run(work = simulated) {
  const mine = ++turn;
  const gone = () => mine !== turn;
  failed("");
  refused([]);
  $("times").tBodies[0].replaceChildren();
  for (const name of ["times", "details", "search-box", "improvements"]) $(name).hidden = true;
  $("about").textContent = "";
  history.replaceState(null, "", fragment());
  $("stop").disabled = false;
  try {
    const request = asked();
    const machine = await ask({ ...request, ask: "machine" });
    if (gone()) return;
    if (machine.error) throw new Error(machine.error);
    about(machine.ok);
    paths(machine.ok);
    await work({ ...request, path: field("path").value }, gone);
  } catch (error) {
    if (gone()) return;
    failed(error.message);
    $("status").textContent = "No answer.";
  }
  if (gone()) return;
  $("stop").disabled = true;
  document.body.dataset.answered = mine;
}

// Whatever the engine is busy with, nobody waits for it any longer.
function begun(work) {
  if (!$("stop").disabled) stop();
  ready.then(() => run(work));
}

const posed = () => ({ collective: field("collective").value, size: size() });

async function simulated(request, gone) {
  const began = performance.now(), without = [], written = request.schedule.trim();
  const all = [...field("algorithm").options].map((one) => one.value).filter(Boolean), { value } = field("algorithm");
  const todo = written ? ["schedule"] : value ? [value] : all;
  const more = written ? {} : posed();
  for (const [at, algorithm] of todo.entries()) {
    $("status").textContent = `${at} of ${todo.length}: ${algorithm}`;
    const found = await ask({ ...request, ...more, ask: "time", algorithm });
    if (gone()) return;
    if (found.ok) row(algorithm, found.ok);
    else without.push([algorithm, found.error]);
    if (todo.length === 1 && found.error) throw new Error(found.error);
  }
  chosen();
  $("status").textContent = `${todo.length - without.length} of ${todo.length} in ${((performance.now() - began) / 1000).toFixed(1)} s, the fastest first.`;
  refused(without);
}

async function main() {
  const found = await (ready = begin());
  if (found.error) throw new Error(found.error);
  names = found.ok;
  for (const name of Object.keys(data.machines)) option(field("machine"), name);
  for (const name of Object.keys(data.networks)) option($("networks"), name);
  for (const name of names.collectives) option(field("collective"), name);
  option(field("path"), "", "default");
  field("machine").value = "hgx-h100";
  shipped();
  algorithms();
  restore();
  field("machine").addEventListener("change", () => { shipped(); field("path").value = ""; });
  field("collective").addEventListener("change", algorithms);
  $("shipped").addEventListener("click", shipped);
  $("clear").addEventListener("click", () => { field("schedule").value = field("issue").value = ""; });
  form.addEventListener("submit", (event) => { event.preventDefault(); begun(simulated); });
  $("stop").addEventListener("click", () => {
    const best = search.running && search.improvements.length;
    stop();
    $("status").textContent = "Stopped.";
    $("stop").disabled = true;
    if (best) begun((_, gone) => taken(null, gone));
  });
  searches();
  $("share").addEventListener("click", async () => {
    history.replaceState(null, "", fragment());
    try {
      await navigator.clipboard.writeText(location.href);
      $("status").textContent = "The link is in the clipboard; it holds the whole question.";
    } catch {
      $("status").textContent = "The address of this page now holds the whole question: copy it from there.";
    }
  });
  addEventListener("hashchange", () => { restore(); begun(simulated); });
  document.body.dataset.ready = "true";
  await run();
}

main().catch((error) => failed(error.message));
