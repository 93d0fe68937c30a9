// Sliders over points that were computed before: each setting is one of them, nothing is computed here.
LW.whatIf = (box) => {
  const data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
  const sliders = [...box.querySelectorAll("input")], bar = box.querySelector(".parts");
  const keys = [...box.querySelectorAll(".part-keys li")], told = [...box.querySelectorAll(".told dd")];
  const pieces = keys.map((key, i) => LW.element("i", bar, `p${i}`));
  const show = () => {
    const at = sliders.reduce((place, slider, i) => place * data.counts[i] + Number(slider.value), 0);
    sliders.forEach((slider, i) => {
      const stop = data.stops[i][slider.value];
      slider.nextElementSibling.textContent = stop;
      slider.setAttribute("aria-valuetext", stop);
    });
    const [texts, shares] = data.points[at] || [told.map(() => "—"), keys.map(() => 0)];
    told.forEach((cell, i) => { cell.textContent = texts[i]; });
    const words = shares.map((share) => `${(100 * share).toFixed(1)} %`);
    keys.forEach((key, i) => { key.querySelector("b").textContent = words[i]; pieces[i].style.width = `${100 * shares[i]}%`; });
    bar.setAttribute("aria-label", keys.map((key, i) => `${key.querySelector("span").textContent} ${words[i]}`).join(", "));
  };
  sliders.forEach((slider) => slider.addEventListener("input", show));
  box.hidden = false;
  show();
};
