// Lists of lines: filtered, sorted, limited to one system.
(() => {
  const folded = (text) => text.normalize("NFC").toLowerCase().replace(/\s+/g, " ").trim();

  // The text of a paragraph without what is only in the reference.
  const output = (node) => [...node.childNodes].map((part) =>
    part.nodeName === "DEL" ? "" : part.textContent).join("");

  // A line as it is filtered and sorted: read once, when a list is first opened.
  function read(article) {
    const [source, reference, ...rest] = article.querySelectorAll("p");
    // an output that is the reference has no text of its own
    const text = (node) => folded(output(node.querySelector("bdi") ?? reference.querySelector("bdi")));
    return {
      article,
      number: Number(article.querySelector("h4").textContent),
      words: output(source.querySelector("bdi")).length,
      source: text(source),
      reference: text(reference),
      outputs: rest.map((node) => ({
        node,
        system: node.querySelector("b").textContent,
        bleu: Number(node.querySelector("i").textContent),
        text: text(node),
      })),
    };
  }

  function prepare(list) {
    const lines = [...list.querySelectorAll("article")].map(read);
    const systems = make("select");
    systems.append(list.querySelector("template").content.cloneNode(true));
    const several = systems.options.length > 2;
    // the system that others are compared with
    const other = choice([...systems.options].slice(1).map(({ value }) => [value, value]));
    other.value = list.dataset.baseline;
    const filter = make("input", { type: "search", autocomplete: "off", spellcheck: false });
    const where = choice([["all", "any text"], ["source", "source"], ["reference", "reference"],
      ["outputs", "outputs"]]);
    const orders = [["number", "line number"], ["worst", "BLEU, lowest first"],
      ["best", "BLEU, highest first"], ["long", "source length, longest first"],
      ["short", "source length, shortest first"]];
    if (several) {
      orders.splice(3, 0, ["spread", "difference between systems"],
        ["above", "better than the other first"], ["below", "worse than the other first"]);
    }
    const order = choice(orders);
    const differ = make("input", { type: "checkbox" });
    const count = make("output");
    const label = (text, control) => make("label", {}, text, control);
    const choices = make("div", { className: "choices" },
      label("Find", filter), label("in", where), label("Show", systems), label("Sort by", order));
    if (several) {
      choices.append(label("Compare with", other),
        make("label", {}, differ, "only where outputs differ"));
    }
    choices.append(count);
    list.before(choices);

    const chosen = (line) => systems.value
      ? line.outputs.filter((output) => output.system === systems.value) : line.outputs;
    const mean = (outputs) => outputs.reduce((sum, { bleu }) => sum + bleu, 0) / outputs.length;
    // BLEU above the other system: of the chosen system, or the best or worst of all
    const above = (line, choose) => {
      const base = line.outputs.find(({ system }) => system === other.value).bleu;
      return choose(...chosen(line).map(({ bleu }) => bleu - base));
    };
    const spread = (line) => systems.value && systems.value !== other.value
      ? Math.abs(above(line, Math.max))
      : Math.max(...line.outputs.map(({ bleu }) => bleu))
        - Math.min(...line.outputs.map(({ bleu }) => bleu));
    const keys = {
      number: () => 0,
      worst: (line) => mean(chosen(line)),
      best: (line) => -mean(chosen(line)),
      spread: (line) => -spread(line),
      above: (line) => -above(line, Math.max),
      below: (line) => above(line, Math.min),
      long: (line) => -line.words,
      short: (line) => line.words,
    };

    let sorted = "number ";
    function update() {
      const text = folded(filter.value);
      let shown = 0;
      for (const line of lines) {
        const texts = [];
        if (["all", "source"].includes(where.value)) texts.push(line.source);
        if (["all", "reference"].includes(where.value)) texts.push(line.reference);
        if (["all", "outputs"].includes(where.value)) {
          texts.push(...chosen(line).map(({ text }) => text));
        }
        const same = line.outputs.every(({ text }) => text === line.outputs[0].text);
        const keep = texts.some((each) => each.includes(text)) && !(differ.checked && same);
        line.article.hidden = !keep;
        shown += keep;
        for (const { node, system } of line.outputs) {
          node.hidden = Boolean(systems.value) && system !== systems.value;
        }
      }
      if (sorted !== `${order.value} ${systems.value} ${other.value}`) {
        sorted = `${order.value} ${systems.value} ${other.value}`;
        const by = new Map(lines.map((line) => [line, keys[order.value](line)]));
        const ranked = [...lines].sort((a, b) => by.get(a) - by.get(b) || a.number - b.number);
        list.append(...ranked.map(({ article }) => article));
      }
      count.textContent =
        `${shown.toLocaleString("en")} of ${lines.length.toLocaleString("en")} lines`;
    }
    choices.addEventListener("input", update);
    update();
  }

  for (const list of document.querySelectorAll("#sentences .lines")) {
    const box = list.closest("details");
    box.addEventListener("toggle", () => prepare(list), { once: true });
  }
})();
