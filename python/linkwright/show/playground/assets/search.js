
// A search. Improvements arrive while it goes on, so one that is stopped has an answer, too.
let search = { improvements: [] };

const factor = (one) => (search.known.time_ps / one.time_ps).toFixed(2);
const seconds = () => {
  const { value } = $("seconds");
  if (!/^([1-9]|[1-5]\d|60)$/.test(value)) throw new Error(`seconds to search ${value}: write a whole number from 1 to 60`);
  return Number(value);
};

function heard(one) {
  search.improvements.push(one);
  // Built-in algorithms are looked at first, so the last of them is the fastest.
  if (one.known) search.known = one;
  const rows = search.improvements.map((each) => {
    const line = made("tr"), cells = [`${each.elapsed_s.toFixed(2)} s`, time(each.time_ps), search.known ? `${factor(each)} ×` : "–"];
    line.append(made("td", each.known ? each.recipe : each.method, { title: each.recipe }), ...cells.map((text) => made("td", text, { className: "n" })));
    return line;
  });
  $("improvements").querySelector("tbody").replaceChildren(...rows.reverse());
  $("improvements").hidden = false;
}

async function searched(request, gone) {
  const asks = { ...request, ...posed(), seconds: seconds() }, bar = $("progress"), began = performance.now();
  search = { asks, improvements: [], running: true };
  $("verdict").textContent = "";
  $("taken").hidden = true;
  $("search-box").hidden = bar.hidden = false;
  $("improvements").open = true;
  $("status").textContent = `Searching for ${asks.seconds} s.`;
  const tick = setInterval(() => {
    bar.value = (performance.now() - began) / 1e3 / asks.seconds;
    if (gone()) clearInterval(tick);
  }, 200);
  const found = await ask({ ...asks, ask: "search" }, {}, (one) => gone() || heard(one));
  clearInterval(tick);
  if (gone()) return;
  search.running = false;
  $("search-box").hidden = true;
  if (found.error && !search.improvements.length) throw new Error(found.error);
  if (found.error) failed(found.error);
  await taken(found.ok, gone);
}

// Prove and time what was found and the best built-in algorithm again, as any schedule.
async function taken(found, gone) {
  const { asks, known, improvements } = search, one = found?.answer ?? improvements.at(-1);
  const name = one.known ? one.recipe : `found by ${one.method}`;
  for (const each of one.known || !known ? [one] : [one, known]) {
    const again = await ask(itself(asks, each));
    if (gone()) return;
    if (again.error) throw new Error(again.error);
    if (again.ok.time_ps !== each.time_ps) throw new Error(`internal error: the search says ${each.time_ps} ps, a simulation ${again.ok.time_ps} ps`);
    row(each === one ? name : each.recipe, again.ok);
  }
  chosen(name);
  search.answer = one;
  $("verdict").textContent = verdict(found, one);
  $("found-text").value = withOrigin(one);
  for (const name of ["search-box", "taken", "improvements"]) $(name).hidden = false;
  $("improvements").open = false;
  const count = found ? `${found.tried.toLocaleString("en")} schedules tried` : "Stopped";
  const gain = known ? `${factor(one)} times as fast as the best built-in algorithm` : "and no built-in algorithm runs here";
  $("status").textContent = one.known ? `${count}: none beats the best built-in algorithm.` : `${count}. Found: ${time(one.time_ps)}, ${gain}.`;
}

const itself = ({ path, ...asks }, one) => ({ ...asks, ask: "time", schedule: one.schedule, issue: one.issue, path: one.path ?? path });

function robust({ wins, draws, least, serial }) {
  const drawn = draws ? `in ${wins} of ${draws} draws of the machine's rates and times within 20 %, at least ${least.toFixed(2)}\u00a0×` : "no draws of the machine's rates and times";
  return `${drawn}; ${serial.toFixed(2)}\u00a0× if a rank's transfers start one after another`;
}

function verdict(found, one) {
  const all = [`${one.method}: ${one.recipe}; issue policy ${one.issue}.`];
  if (one.lasting) all.push(`Gain: ${robust(one.lasting)}.`);
  else if (!one.known) all.push("The robustness of the gain was not examined: it is less than 2 %, or the time was over.");
  const { fastest, unseen } = found ?? {};
  if (fastest) all.push(`Passed over, as its gain is not robust: ${time(fastest.time_ps)}, ${factor(fastest)}\u00a0×, ${fastest.method}; ${robust(fastest.lasting)}.`);
  if (unseen) all.push(`${unseen} built-in algorithms were not examined; search longer.`);
  return all.join(" ");
}

// The schedule as text, with where it comes from in comments, as `linkwright synthesize --out` writes it.
function withOrigin(one) {
  const { asks, known } = search, [first, ...rest] = one.schedule.split("\n");
  const origin = {
    machine: [asks.file, asks.nodes && `${asks.nodes} nodes`, asks.fabric, ...asks.without.map((name) => `without ${name}`), ...asks.degrade.map((name) => `degraded ${name}`)].filter(Boolean).join(", "),
    collective: `${asks.collective} of ${asks.size || 0} B`, method: one.method, recipe: one.recipe, "issue policy": one.issue, path: one.path ?? asks.path,
    time: `${one.time_ps / 1000} ns`, "best known": known && `${known.time_ps / 1000} ns, ${known.recipe}`,
    "gain lasts": one.lasting && robust(one.lasting), "made by": `linkwright ${names.version}, playground`,
  };
  const comments = Object.entries(origin).filter(([, value]) => value).map(([key, value]) => `# ${key}: ${value.replace(/\s+/g, " ")}`);
  return [first, ...comments, ...rest].join("\n");
}

function searches() {
  const label = () => { $("search").textContent = `Search ${$("seconds").value} s`; };
  $("seconds").addEventListener("input", label);
  label();
  $("search").addEventListener("click", () => begun(searched));
  $("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText($("found-text").value);
      $("status").textContent = "The schedule is in the clipboard.";
    } catch {
      $("found-text").closest("details").open = true;
      $("found-text").select();
      $("status").textContent = "The browser gives no clipboard: copy the selected text.";
    }
  });
  $("own").addEventListener("click", () => {
    const { path, issue } = itself(search.asks, search.answer);
    for (const [name, value] of Object.entries({ schedule: $("found-text").value, path, issue })) field(name).value = value;
    field("schedule").closest("details").open = true;
    begun(simulated);
  });
}
