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

LW.start = async () => {
  document.querySelectorAll("table.sortable").forEach(LW.sortable);
  document.querySelectorAll(".choice").forEach(LW.choice);
  document.querySelectorAll(".whatif").forEach(LW.whatIf);
  document.getElementById("theme").addEventListener("click", () => LW.theme.next());
  for (const target of document.querySelectorAll("[data-chart]")) if (!target.closest("[hidden]")) await LW.draw(target);
  LW.theme.apply();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const chart of LW.charts) if (!chart.target.closest("[hidden]")) chart.resize();
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
