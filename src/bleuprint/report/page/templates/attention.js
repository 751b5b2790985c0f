// One map of attention, of the sentence, system, kind, layer and head that are chosen.
(() => {
  const data = document.getElementById("maps-data");
  if (!data) return;
  const all = JSON.parse(data.textContent);
  const box = document.getElementById("maps");
  const kinds = {
    cross: ["decoder to source", "Rows: the translation. Columns: the source."],
    encoder: ["encoder self-attention", "Rows and columns: the source."],
    decoder: ["decoder self-attention", "Rows: the translation. Columns: the tokens before."],
  };
  const selects = {};
  const choices = make("div", { className: "choices" });
  for (const name of ["Sentence", "System", "Kind", "Layer", "Head"]) {
    selects[name] = make("select");
    choices.append(make("label", {}, name, selects[name]));
  }
  // Replaces the options of a select; the value stays if it is still one of them.
  function fill(name, pairs, fallback) {
    const select = selects[name], before = select.value;
    select.replaceChildren(...choice(pairs).options);
    const values = pairs.map(([value]) => String(value));
    select.value = values.includes(before) ? before : String(fallback);
  }
  const numbered = (count) => Array.from({ length: count }, (_, i) => [i, i + 1]);
  const place = make("p", { className: "hint" });
  const wide = make("div", { className: "wide", tabIndex: 0 });
  box.append(choices, place, wide);

  function draw() {
    const sentence = all.filter(({ sentence }) => sentence === selects.Sentence.value);
    fill("System", sentence.map(({ system }) => [system, system]), sentence[0].system);
    const { maps, languages: [source, target] } =
      sentence.find(({ system }) => system === selects.System.value);
    const kind = selects.Kind.value, map = maps[kind];
    fill("Layer", numbered(map.layers), map.layers - 1);
    fill("Head", [["mean", `mean of ${map.heads}`], ...numbered(map.heads)], "mean");
    const layer = Number(selects.Layer.value), mean = selects.Head.value === "mean";
    const heads = mean ? numbered(map.heads).map(([i]) => i) : [Number(selects.Head.value)];
    const bytes = Uint8Array.from(atob(map.weights), (c) => c.charCodeAt(0));
    const width = map.columns.length, size = map.rows.length * width;
    const starts = heads.map((head) => (layer * map.heads + head) * size);
    const weight = (i, j) => starts.reduce((sum, start) => sum + bytes[start + i * width + j], 0)
      / starts.length / 255;
    place.textContent = kinds[kind][1];
    const languages = {
      cross: [target, source], encoder: [source, source], decoder: [target, target],
    }[kind];
    const name = mean ? `mean of ${map.heads} heads` : `head ${heads[0] + 1}`;
    wide.replaceChildren(mapTable(map, weight, languages, `Layer ${layer + 1}, ${name}`));
  }
  const sentences = [...new Set(all.map(({ sentence }) => sentence))];
  fill("Sentence", sentences.map((each) => [each, each]), sentences[0]);
  fill("Kind", Object.entries(kinds).map(([kind, [name]]) => [kind, name]), "cross");
  choices.addEventListener("change", draw);
  draw();
})();
