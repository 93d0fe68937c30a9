// Draws every chart of the page, makes the tables sortable, marks the section in view.
LW.live = LW.element("div", document.body, "hidden");
LW.live.setAttribute("aria-live", "polite");

LW.start = async () => {
  const kinds = { plot: LW.curve, heat: LW.heat, box: LW.boxplot };
  document.querySelectorAll("table.sortable").forEach(LW.sortable);
  document.getElementById("theme").addEventListener("click", () => LW.theme.next());
  for (const target of document.querySelectorAll("[data-chart]")) {
    const data = JSON.parse(target.parentElement.querySelector('script[type="application/json"]').textContent);
    LW.charts.push(await kinds[target.dataset.chart](target, data));
  }
  LW.theme.apply();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const chart of LW.charts) chart.resize();
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
