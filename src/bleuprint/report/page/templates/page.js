document.documentElement.classList.add("scripted");

// tables: a head sorts by its column, numbers from the largest; a second click reverses the order
{
  const sort = (head, place) => {
    const row = head.parentElement, body = head.closest("table").tBodies[0];
    const key = ({ cells: { [place]: cell } }) => cell.dataset.key ?? cell.textContent;
    const filled = [...body.rows].filter((line) => key(line) !== "");
    const numbers = filled.every((line) => !Number.isNaN(Number(key(line))));
    const now = head.getAttribute("aria-sort") ?? (numbers ? "ascending" : "descending");
    const order = now === "ascending" ? "descending" : "ascending";
    const sign = order === "ascending" ? 1 : -1;
    filled.sort((one, other) => sign * (numbers
      ? Number(key(one)) - Number(key(other))
      : key(one).localeCompare(key(other), "en", { numeric: true })));
    const empty = [...body.rows].filter((line) => key(line) === "");
    body.append(...filled, ...empty);
    for (const other of row.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
  };
  for (const head of document.querySelectorAll("table.sortable thead th")) {
    const button = make("button", { type: "button", title: "Sort by this column" },
      ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head, head.cellIndex));
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

// print: folded parts are opened, except the long lists of lines
{
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")]
      .filter((one) => !one.closest("#sentences"));
    for (const one of opened) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
  });
}
