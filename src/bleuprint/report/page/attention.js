// One map of attention, of the sentence, system, kind, layer and head that are chosen.
(() => {
  const data = document.getElementById("maps-data");
  if (!data) return;
  const all = JSON.parse(data.textContent);
  const box = document.getElementById("maps");
  const kinds = {
    cross: ["decoder to source", "Rows: the translation as it is written. Columns: the source."],
    encoder: ["encoder to itself", "Rows: the source as it is read. Columns: the same source."],
    decoder: ["decoder to itself",
      "Rows: the translation as it is written. Columns: what was written before."],
  };
  // An element with these properties; text never becomes markup.
  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const selects = {};
  const choices = make("div", { className: "choices" });
  for (const name of ["Sentence", "System", "Kind", "Layer", "Head"]) {
    selects[name] = make("select");
    choices.append(make("label", {}, name, selects[name]));
  }
  // The choices of a select; what was chosen stays if it is still there.
  function fill(name, pairs, fallback) {
    const select = selects[name], before = select.value;
    select.replaceChildren(...pairs.map(([value, textContent]) =>
      make("option", { value, textContent })));
    const values = pairs.map(([value]) => String(value));
    select.value = values.includes(before) ? before : String(fallback);
  }
  const place = make("p", { className: "hint" });
  const wide = make("div", { className: "wide", tabIndex: 0 });
  box.append(choices, place, wide);
  box.hidden = false;

  function draw() {
    const of = all.filter(({ sentence }) => sentence === selects.Sentence.value);
    fill("System", of.map(({ system }) => [system, system]), of[0].system);
    const { maps, languages } = of.find(({ system }) => system === selects.System.value);
    const kind = selects.Kind.value, map = maps[kind];
    fill("Layer", Array.from({ length: map.layers }, (_, i) => [i, i + 1]), map.layers - 1);
    fill("Head", [["mean", `mean of ${map.heads}`],
      ...Array.from({ length: map.heads }, (_, i) => [i, i + 1])], "mean");
    const bytes = Uint8Array.from(atob(map.weights), (c) => c.charCodeAt(0));
    const size = map.rows.length * map.columns.length;
    const chosen = selects.Head.value === "mean"
      ? Array.from({ length: map.heads }, (_, i) => i) : [Number(selects.Head.value)];
    const starts = chosen.map((head) => (Number(selects.Layer.value) * map.heads + head) * size);
    const weight = (i) =>
      starts.reduce((sum, start) => sum + bytes[start + i], 0) / starts.length / 255;
    place.textContent = kinds[kind][1];
    const [above, beside] = {
      cross: languages, encoder: [languages[0], languages[0]],
      decoder: [languages[1], languages[1]],
    }[kind];
    const head = (scope, lang, text) => make("th", { scope, lang }, make("bdi", {}, text));
    const rows = map.rows.map((unit, row) => make("tr", {}, head("row", beside, unit),
      ...map.columns.map((column, i) => {
        const value = weight(row * map.columns.length + i), step = Math.round(100 * value);
        return make("td", { className: `s${step}`, textContent: step,
          title: `${unit} ← ${column}: ${(100 * value).toFixed(1)} %` });
      })));
    const heads = map.columns.map((unit) => head("col", above, unit));
    const name = selects.Head.value === "mean" ? `mean of ${map.heads} heads`
      : `head ${Number(selects.Head.value) + 1}`;
    wide.replaceChildren(make("table", {},
      make("caption", { textContent: `Layer ${Number(selects.Layer.value) + 1}, ${name}` }),
      make("thead", {}, make("tr", {}, make("td"), ...heads)),
      make("tbody", {}, ...rows)));
  }
  const sentences = [...new Set(all.map(({ sentence }) => sentence))];
  fill("Sentence", sentences.map((each) => [each, each]), sentences[0]);
  fill("Kind", Object.entries(kinds).map(([kind, [name]]) => [kind, name]), "cross");
  choices.addEventListener("change", draw);
  draw();
})();
