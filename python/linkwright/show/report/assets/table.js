// Sortable tables: a click on a header sorts by the cells' data-sort, else by their text; cells without a value come
// last in both directions; equal cells keep their order.
LW.sortable = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = LW.element("button", null, "", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => LW.sort(table, column));
  });
};

LW.sort = (table, column) => {
  const head = table.tHead.rows[0].cells[column];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = [...table.tBodies[0].rows].map((row, order) => ({ row, order, key: LW.sortKey(row.cells[column]) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.order - b.order;
    const numbers = (typeof b.key === "number") - (typeof a.key === "number"); // in a mixed column before texts
    const by = numbers || (typeof a.key === "number" ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true }));
    return (down ? -by : by) || a.order - b.order;
  });
  table.tBodies[0].append(...keyed.map((item) => item.row));
};

LW.sortKey = (cell) => {
  const shown = cell.querySelector(".v");
  const text = cell.dataset.sort ?? (shown ? shown.textContent : cell.querySelector("small") ? "" : cell.textContent).trim();
  if (text === "") return null;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
};
