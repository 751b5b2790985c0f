document.documentElement.classList.add("scripted");

// tables: a head sorts by its column, numbers from the largest; a second click reverses the order
{
  const sort = (head, place) => {
    const bodies = [...head.closest("table").tBodies].map((body) => [body,
      [...body.rows].filter((line) => !line.classList.contains("group"))]);
    const key = ({ cells: { [place]: cell } }) => cell.dataset.key ?? cell.textContent;
    const isNumber = (line) => !Number.isNaN(Number(key(line)));
    const numbers = bodies.every(([, lines]) => lines.every(isNumber));
    const now = head.getAttribute("aria-sort") ?? (numbers ? "ascending" : "descending");
    const order = now === "ascending" ? "descending" : "ascending";
    const sign = order === "ascending" ? 1 : -1;
    for (const [body, lines] of bodies) {
      const filled = lines.filter((line) => key(line) !== "");
      filled.sort((one, other) => sign * (numbers
        ? Number(key(one)) - Number(key(other))
        : key(one).localeCompare(key(other), "en", { numeric: true })));
      body.append(...filled, ...lines.filter((line) => key(line) === ""));
    }
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
  };
  for (const head of document.querySelectorAll("table.sortable thead th")) {
    const button = make("button", { type: "button", title: "Sort by this column" },
      ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head, head.cellIndex));
  }
}

// on a phone each cell with a text stands after its head
for (const table of document.querySelectorAll("main table:not(.map)")) {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  for (const cell of table.querySelectorAll("tr:not(.group) > td")) {
    if (!["", "–"].includes(cell.textContent)) cell.dataset.head = heads[cell.cellIndex];
  }
}

// legends: boxes hide and show a system's lines in all charts; of many only the first are shown
{
  const SHOWN = 6;
  const legends = [...document.querySelectorAll(".legend")];
  const show = (system, shown) => {
    for (const box of document.querySelectorAll(`.legend [data-system="${system}"]`)) {
      box.checked = shown;
    }
    for (const line of document.querySelectorAll(`svg [id*="-of-${system}."]`)) {
      line.classList.toggle("off", !shown);
    }
  };
  const systems = legends.length ? legends[0].querySelectorAll("input").length : 0;
  for (let system = 0; system < systems; system++) show(system, system < SHOWN);
  for (const legend of legends) {
    for (const box of legend.querySelectorAll("input")) {
      box.addEventListener("change", () => show(box.dataset.system, box.checked));
    }
    for (const [name, shown] of systems > SHOWN ? [["All", true], ["None", false]] : []) {
      const button = make("button", { type: "button", textContent: name });
      button.addEventListener("click", () => {
        for (let system = 0; system < systems; system++) show(system, shown);
      });
      legend.append(make("li", {}, button));
    }
  }
}
