// Shared by all charts: the one global of the page, colours of the theme, numbers with units, the tooltip.
"use strict";
const LW = { charts: [] };

LW.colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The rule and the prefixes (set in the page) of quantity.py: the largest prefix that keeps the rounded number at least 1.
LW.text = (value, unit, digits = 4) => {
  const steps = LW.prefixes[unit];
  const size = Math.abs(unit === "B" ? value : Number(value.toPrecision(digits)));
  let factor = 1, name = unit === "1" ? "" : unit;
  if (steps && value !== 0) [factor, name] = steps.find(([f]) => size >= f * (1 - 1e-9)) || steps[steps.length - 1];
  const shown = Number((value / factor).toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
  return name ? `${shown} ${name}` : shown;
};

// Half the width of an interval over the value, as quantity.py writes it: ±1.2 %.
LW.plusMinus = (value, low, high) => {
  const percent = (50 * (high - low)) / Math.abs(value);
  return `±${percent.toLocaleString("en", { minimumFractionDigits: percent < 9.95 ? 1 : 0, maximumFractionDigits: percent < 9.95 ? 1 : 0 })} %`;
};

// On an axis the label states the unit once, unless a prefix makes it differ from tick to tick.
LW.tick = (value, unit) => LW.text(value, LW.prefixes[unit] || unit === "%" ? unit : "1", 3);
LW.axisLabel = (axis) => (LW.prefixes[axis.unit] || ["%", "1", ""].includes(axis.unit) ? axis.title : `${axis.title}, ${axis.unit}`);

LW.element = (tag, parent, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};

LW.tip = {
  box: null,
  show(x, y, title, lines) {
    this.box ||= LW.element("div", document.body, "tip");
    this.box.replaceChildren();
    LW.element("b", this.box, "", title);
    for (const line of lines) if (line) LW.element("span", this.box, "", line);
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    this.box.style.left = `${Math.max(4, x + 16 + width > innerWidth ? x - width - 12 : x + 16)}px`;
    this.box.style.top = `${Math.max(4, y + 16 + height > innerHeight ? y - height - 12 : y + 16)}px`;
  },
  hide() { if (this.box) this.box.hidden = true; },
};

// A command is copied by a click on it.
document.addEventListener("click", ({ target }) => {
  const command = target.closest("td.code button");
  if (!command) return;
  navigator.clipboard?.writeText(command.textContent.replaceAll("\u200b", ""));
  command.title = "Copied";
});
