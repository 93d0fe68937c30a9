// Draws every chart of the page, makes the tables sortable, marks the section in view.
LW.live = LW.element("div", document.body, "hidden");
LW.live.setAttribute("aria-live", "polite");

// Draws a chart once: at the start, or when it is chosen for the first time.
LW.draw = async (target) => {
  if (target.dataset.begun) return;
  target.dataset.begun = "true";
  const kinds = { plot: LW.curve, heat: LW.heat, box: LW.boxplot };
  const data = JSON.parse(target.parentElement.querySelector('script[type="application/json"]').textContent);
  const chart = await kinds[target.dataset.chart](target, data);
  LW.charts.push({ ...chart, target });
  chart.redraw();
};

// What is not seen has no size to draw in: a chart that is not chosen, or in a section that is folded.
LW.unseen = (target) => target.closest("[hidden], details.folded:not([open])");

LW.unfold = (box) => {
  if (box.open) for (const target of box.querySelectorAll("[data-chart]")) if (!LW.unseen(target)) {
    const drawn = LW.charts.find((chart) => chart.target === target);
    if (drawn) drawn.resize(); else LW.draw(target);
  }
};

// A link to a section opens it.
LW.reveal = (hash) => {
  for (let box = document.getElementById(hash.slice(1))?.querySelector("details.folded"); box; box = box.parentElement.closest("details.folded")) box.open = true;
};

LW.start = async () => {
  document.querySelectorAll("table.sortable").forEach(LW.sortable);
  document.querySelectorAll(".choice").forEach(LW.choice);
  document.querySelectorAll(".whatif").forEach(LW.whatIf);
  document.getElementById("theme").addEventListener("click", () => LW.theme.next());
  for (const target of document.querySelectorAll("[data-chart]")) if (!LW.unseen(target)) await LW.draw(target);
  document.querySelectorAll("details.folded").forEach((box) => box.addEventListener("toggle", () => LW.unfold(box)));
  document.addEventListener("click", (event) => { const link = event.target.closest('a[href^="#"]'); if (link) LW.reveal(link.hash); });
  addEventListener("beforeprint", () => document.querySelectorAll("details.folded").forEach((box) => { box.open = true; }));
  LW.reveal(location.hash);
  LW.theme.apply();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const chart of LW.charts) if (!LW.unseen(chart.target)) chart.resize();
  });
  LW.follow();
  document.body.dataset.ready = "true";
};

LW.follow = () => {
  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) links.get(target.id)?.classList.toggle("here", isIntersecting);
  }, { rootMargin: "-10% 0px -70% 0px" });
  document.querySelectorAll("section[id]").forEach((section) => watcher.observe(section));
};
LW.start();
