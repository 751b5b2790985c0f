// Lists of lines: the reader can search, sort, and limit them to one system.
(() => {
  // Returns a text as it is searched: without regard to case and white space.
  const searchable = (text) => text.normalize("NFC").toLowerCase().replace(/\s+/g, " ").trim();

  // Returns the text of an output. The words in <del> are those of the reference alone.
  function outputText(node) {
    const parts = [...node.childNodes].filter((part) => part.nodeName !== "DEL");
    return parts.map((part) => part.textContent).join("");
  }

  // Returns what a line is searched and sorted by.
  function readLine(article) {
    const [source, reference, ...outputs] = article.querySelectorAll("p");
    const referenceNode = reference.querySelector("bdi");
    // An output that equals the reference has no text of its own.
    const textOf = (node) => searchable(outputText(node.querySelector("bdi") ?? referenceNode));
    return {
      article,
      number: Number(article.querySelector("h4").textContent),
      sourceLength: outputText(source.querySelector("bdi")).length,
      source: textOf(source),
      reference: textOf(reference),
      outputs: outputs.map((node) => ({
        node,
        system: node.querySelector("b").textContent,
        bleu: Number(node.querySelector("i").textContent),
        text: textOf(node),
      })),
    };
  }

  const SEARCH_FIELDS = [
    ["all", "any text"],
    ["source", "source"],
    ["reference", "reference"],
    ["outputs", "outputs"],
  ];
  const SORT_ORDERS = [
    ["number", "line number"],
    ["worst", "BLEU, lowest first"],
    ["best", "BLEU, highest first"],
    ["long", "source length, longest first"],
    ["short", "source length, shortest first"],
  ];
  const SORT_ORDERS_OF_SEVERAL_SYSTEMS = [
    ["number", "line number"],
    ["worst", "BLEU, lowest first"],
    ["best", "BLEU, highest first"],
    ["spread", "difference between systems"],
    ["above", "better than the other first"],
    ["below", "worse than the other first"],
    ["long", "source length, longest first"],
    ["short", "source length, shortest first"],
  ];

  // Puts the choices above a list, and lets them filter and sort it. It reads all lines, which
  // takes a moment, so it is called when the reader first opens the list.
  function prepareList(list) {
    const lines = [...list.querySelectorAll("article")].map(readLine);
    const systemSelect = make("select");
    systemSelect.append(list.querySelector("template").content.cloneNode(true));
    const systems = [...systemSelect.options].slice(1).map(({ value }) => value);
    const hasSeveralSystems = systems.length > 1;
    const otherSelect = choice(systems.map((system) => [system, system]));
    otherSelect.value = list.dataset.baseline;
    const searchInput = make("input", { type: "search", autocomplete: "off", spellcheck: false });
    const fieldSelect = choice(SEARCH_FIELDS);
    const orderSelect = choice(hasSeveralSystems ? SORT_ORDERS_OF_SEVERAL_SYSTEMS : SORT_ORDERS);
    const differBox = make("input", { type: "checkbox" });
    const lineCount = make("output");
    const choices = make("div", { className: "choices" },
      make("label", {}, "Find", searchInput),
      make("label", {}, "in", fieldSelect),
      make("label", {}, "Show", systemSelect),
      make("label", {}, "Sort by", orderSelect));
    if (hasSeveralSystems) {
      choices.append(
        make("label", {}, "Compare with", otherSelect),
        make("label", {}, differBox, "only where outputs differ"));
    }
    choices.append(lineCount);
    list.before(choices);

    // Returns the outputs of the chosen system, or of all.
    function chosenOutputs(line) {
      const system = systemSelect.value;
      if (!system) return line.outputs;
      return line.outputs.filter((output) => output.system === system);
    }

    function meanBleu(line) {
      const outputs = chosenOutputs(line);
      return outputs.reduce((sum, { bleu }) => sum + bleu, 0) / outputs.length;
    }

    // Returns the BLEU of each chosen output above that of the other system.
    function differencesFromOther(line) {
      const other = line.outputs.find(({ system }) => system === otherSelect.value);
      return chosenOutputs(line).map(({ bleu }) => bleu - other.bleu);
    }

    // Returns the difference in BLEU between the chosen system and the other one, or between the
    // best and the worst of all systems.
    function spread(line) {
      if (systemSelect.value && systemSelect.value !== otherSelect.value) {
        return Math.abs(differencesFromOther(line)[0]);
      }
      const scores = line.outputs.map(({ bleu }) => bleu);
      return Math.max(...scores) - Math.min(...scores);
    }

    // For each order, the number by which lines are sorted, the smallest first. Equal ones stay in
    // the order of the lines.
    const sortKeys = {
      number: () => 0,
      worst: (line) => meanBleu(line),
      best: (line) => -meanBleu(line),
      spread: (line) => -spread(line),
      above: (line) => -Math.max(...differencesFromOther(line)),
      below: (line) => Math.min(...differencesFromOther(line)),
      long: (line) => -line.sourceLength,
      short: (line) => line.sourceLength,
    };

    // Returns the texts of a line in which the reader searches.
    function searchedTexts(line) {
      const outputs = chosenOutputs(line).map(({ text }) => text);
      switch (fieldSelect.value) {
        case "source": return [line.source];
        case "reference": return [line.reference];
        case "outputs": return outputs;
        default: return [line.source, line.reference, ...outputs];
      }
    }

    function isShown(line, searchText) {
      const haveSameOutput = line.outputs.every(({ text }) => text === line.outputs[0].text);
      if (differBox.checked && haveSameOutput) return false;
      return searchedTexts(line).some((text) => text.includes(searchText));
    }

    function sortLines() {
      const sortKey = sortKeys[orderSelect.value];
      const keys = new Map(lines.map((line) => [line, sortKey(line)]));
      const sorted = [...lines].sort((first, second) =>
        keys.get(first) - keys.get(second) || first.number - second.number);
      list.append(...sorted.map(({ article }) => article));
    }

    let currentOrder = null;
    function update() {
      const searchText = searchable(searchInput.value);
      let shownCount = 0;
      for (const line of lines) {
        line.article.hidden = !isShown(line, searchText);
        if (!line.article.hidden) shownCount += 1;
        for (const { node, system } of line.outputs) {
          node.hidden = Boolean(systemSelect.value) && system !== systemSelect.value;
        }
      }
      // Sorting is slow, and typing a search text does not change the order.
      const newOrder = `${orderSelect.value} ${systemSelect.value} ${otherSelect.value}`;
      if (newOrder !== currentOrder) {
        currentOrder = newOrder;
        sortLines();
      }
      const shownText = shownCount.toLocaleString("en");
      lineCount.textContent = `${shownText} of ${lines.length.toLocaleString("en")} lines`;
    }
    choices.addEventListener("input", update);
    update();
  }

  for (const list of document.querySelectorAll("#sentences .lines")) {
    const details = list.closest("details");
    details.addEventListener("toggle", () => prepareList(list), { once: true });
  }
})();
