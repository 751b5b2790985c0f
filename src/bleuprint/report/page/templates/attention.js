// Draws one attention map: of the sentence, system, kind, layer and head that the reader chooses.
(() => {
  const dataElement = document.getElementById("maps-data");
  if (!dataElement) return;
  const entries = JSON.parse(dataElement.textContent);
  // The kinds of attention: the name in the list of choices, and what rows and columns are.
  const kinds = {
    cross: {
      name: "decoder to source",
      hint: "Rows: the translation. Columns: the source.",
    },
    encoder: {
      name: "encoder self-attention",
      hint: "Rows and columns: the source.",
    },
    decoder: {
      name: "decoder self-attention",
      hint: "Rows: the translation. Columns: the tokens before.",
    },
  };

  const selects = {};
  const choices = make("div", { className: "choices" });
  for (const name of ["Sentence", "System", "Kind", "Layer", "Head"]) {
    selects[name] = make("select");
    choices.append(make("label", {}, name, selects[name]));
  }
  const hint = make("p", { className: "hint" });
  const mapBox = make("div", { className: "wide", tabIndex: 0 });
  document.getElementById("maps").append(choices, hint, mapBox);

  // Replaces the options of a select. The chosen value stays if it is still an option.
  function fillSelect(name, options, fallback) {
    const select = selects[name];
    const chosen = select.value;
    select.replaceChildren(...choice(options).options);
    const values = options.map(([value]) => String(value));
    select.value = values.includes(chosen) ? chosen : String(fallback);
  }

  // Returns the options 1, 2, ... with the values 0, 1, ...
  function numberedOptions(count) {
    return Array.from({ length: count }, (_, index) => [index, index + 1]);
  }

  // Returns a function that gives the weight (0 to 1) of a row's token for a column's token. Of
  // several heads it is their mean.
  function weightReader(map, layer, heads) {
    // One byte for each weight, in the order layer, head, row, column.
    const bytes = Uint8Array.from(atob(map.weights), (character) => character.charCodeAt(0));
    const columnCount = map.columns.length;
    const headSize = map.rows.length * columnCount;
    const headStarts = heads.map((head) => (layer * map.heads + head) * headSize);
    return (row, column) => {
      const position = row * columnCount + column;
      let sum = 0;
      for (const start of headStarts) sum += bytes[start + position];
      return sum / headStarts.length / 255;
    };
  }

  // Returns the languages of the rows and of the columns.
  function mapLanguages(kind, [source, target]) {
    if (kind === "cross") return [target, source];
    return kind === "encoder" ? [source, source] : [target, target];
  }

  function drawMap() {
    const ofSentence = entries.filter((entry) => entry.sentence === selects.Sentence.value);
    const systems = ofSentence.map((entry) => [entry.system, entry.system]);
    fillSelect("System", systems, ofSentence[0].system);
    const entry = ofSentence.find(({ system }) => system === selects.System.value);
    const kind = selects.Kind.value;
    const map = entry.maps[kind];
    fillSelect("Layer", numberedOptions(map.layers), map.layers - 1);
    const headOptions = [["mean", `mean of ${map.heads}`], ...numberedOptions(map.heads)];
    fillSelect("Head", headOptions, "mean");
    const layer = Number(selects.Layer.value);
    const isMean = selects.Head.value === "mean";
    const allHeads = [...Array(map.heads).keys()];
    const heads = isMean ? allHeads : [Number(selects.Head.value)];
    const headName = isMean ? `mean of ${map.heads} heads` : `head ${heads[0] + 1}`;
    const caption = `Layer ${layer + 1}, ${headName}`;
    const languages = mapLanguages(kind, entry.languages);
    hint.textContent = kinds[kind].hint;
    mapBox.replaceChildren(mapTable(map, weightReader(map, layer, heads), languages, caption));
  }

  const sentences = [...new Set(entries.map((entry) => entry.sentence))];
  fillSelect("Sentence", sentences.map((sentence) => [sentence, sentence]), sentences[0]);
  const kindOptions = Object.entries(kinds).map(([kind, { name }]) => [kind, name]);
  fillSelect("Kind", kindOptions, "cross");
  choices.addEventListener("change", drawMap);
  drawMap();
})();
