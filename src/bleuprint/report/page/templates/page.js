// The style sheet hides what needs a script unless this class is set.
document.documentElement.classList.add("scripted");

// Tables: a click on a head sorts by its column, numbers from the largest. A second click reverses
// the order.
{
  // Returns the rows of each part of a table that are sorted: all except titles.
  function sortedRows(table) {
    return [...table.tBodies].map((body) => {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      return { body, rows };
    });
  }

  function sortTable(head, columnNumber) {
    // A cell whose text is not what it is sorted by has an attribute data-key.
    const sortKey = (row) => {
      const cell = row.cells[columnNumber];
      return cell.dataset.key ?? cell.textContent;
    };
    const parts = sortedRows(head.closest("table"));
    const areNumbers = parts.every(({ rows }) =>
      rows.every((row) => !Number.isNaN(Number(sortKey(row)))));
    const compare = areNumbers
      ? (first, second) => Number(sortKey(first)) - Number(sortKey(second))
      : (first, second) => sortKey(first).localeCompare(sortKey(second), "en", { numeric: true });
    const oppositeOfFirst = areNumbers ? "ascending" : "descending";
    const currentOrder = head.getAttribute("aria-sort") ?? oppositeOfFirst;
    const newOrder = currentOrder === "ascending" ? "descending" : "ascending";
    const sign = newOrder === "ascending" ? 1 : -1;
    for (const { body, rows } of parts) {
      // Rows without a value come last in both orders.
      const filled = rows.filter((row) => sortKey(row) !== "");
      const empty = rows.filter((row) => sortKey(row) === "");
      filled.sort((first, second) => sign * compare(first, second));
      body.append(...filled, ...empty);
    }
    for (const otherHead of head.parentElement.cells) otherHead.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", newOrder);
  }

  for (const head of document.querySelectorAll("table.sortable thead th")) {
    const properties = { type: "button", title: "Sort by this column" };
    const button = make("button", properties, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortTable(head, head.cellIndex));
  }
}

// Tables on a phone: each cell with a text shows the head of its column, by the style sheet.
for (const table of document.querySelectorAll("main table:not(.map)")) {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const cell of table.querySelectorAll("tr:not(.group) > td")) {
    if (!["", "–"].includes(cell.textContent)) cell.dataset.head = heads[cell.cellIndex];
  }
}

// Legends: a box shows or hides a system's lines in all charts. Of many systems, only the first
// ones are shown at the start.
{
  const SHOWN_AT_START = 6;
  const legends = [...document.querySelectorAll(".legend")];
  const systemCount = legends.length ? legends[0].querySelectorAll("input").length : 0;

  function showSystem(system, isShown) {
    for (const box of document.querySelectorAll(`.legend [data-system="${system}"]`)) {
      box.checked = isShown;
    }
    for (const line of document.querySelectorAll(`svg [id*="-of-${system}."]`)) {
      line.classList.toggle("off", !isShown);
    }
  }

  function showAllSystems(isShown) {
    for (let system = 0; system < systemCount; system++) showSystem(system, isShown);
  }

  for (let system = 0; system < systemCount; system++) {
    showSystem(system, system < SHOWN_AT_START);
  }
  for (const legend of legends) {
    for (const box of legend.querySelectorAll("input")) {
      box.addEventListener("change", () => showSystem(box.dataset.system, box.checked));
    }
    if (systemCount > SHOWN_AT_START) {
      for (const [name, isShown] of [["All", true], ["None", false]]) {
        const button = make("button", { type: "button", textContent: name });
        button.addEventListener("click", () => showAllSystems(isShown));
        legend.append(make("li", {}, button));
      }
    }
  }
}
