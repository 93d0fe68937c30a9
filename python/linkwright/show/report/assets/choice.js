// One of several charts: a list chooses which one is seen. Without scripts all of them are.
LW.choice = (box) => {
  const figures = [...box.querySelectorAll("figure")], list = box.querySelector("select");
  const show = () => figures.forEach((figure, i) => { figure.hidden = i !== list.selectedIndex; });
  list.addEventListener("change", () => {
    show();
    const target = figures[list.selectedIndex].querySelector("[data-chart]"), drawn = LW.charts.find((c) => c.target === target);
    if (drawn) drawn.resize(); else LW.draw(target);
  });
  show();
};
