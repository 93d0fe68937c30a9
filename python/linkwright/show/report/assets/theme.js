// Light, dark, or as the system says. Runs in <head>, before the first paint; charts are redrawn on a change.
LW.theme = {
  choices: ["system", "light", "dark"],
  system: matchMedia("(prefers-color-scheme: dark)"),
  chosen: "system",
  printing: false,
  apply() {
    const shown = this.printing ? "light" : this.chosen === "system" ? (this.system.matches ? "dark" : "light") : this.chosen;
    document.documentElement.dataset.theme = shown;
    const button = document.getElementById("theme");
    if (button) button.textContent = `Theme: ${this.chosen}`;
    for (const chart of LW.charts) chart.redraw();
  },
  next() {
    this.chosen = this.choices[(this.choices.indexOf(this.chosen) + 1) % this.choices.length];
    try { localStorage.setItem("linkwright-theme", this.chosen); } catch { /* storage is refused on some file:// pages */ }
    this.apply();
  },
  print(on) {
    this.printing = on;
    for (const chart of LW.charts) chart.resize(on ? 640 : undefined);
    this.apply();
  },
};
try { LW.theme.chosen = localStorage.getItem("linkwright-theme") || "system"; } catch { /* as above */ }
if (!LW.theme.choices.includes(LW.theme.chosen)) LW.theme.chosen = "system";
LW.theme.system.addEventListener("change", () => LW.theme.apply());
addEventListener("beforeprint", () => LW.theme.print(true));
addEventListener("afterprint", () => LW.theme.print(false));
LW.theme.apply();
