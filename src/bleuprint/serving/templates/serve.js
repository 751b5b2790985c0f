const byId = (id) => document.getElementById(id);
const form = byId("form"), results = byId("results"), error = byId("error");
const languages = form.dataset;
let busy = false;

function showStatus(text) { byId("status").textContent = text; }

function showError(text) {
  error.textContent = text;
  error.hidden = !text;
}

async function translate() {
  const text = byId("text").value;
  if (busy || !form.reportValidity()) return;
  results.replaceChildren();
  showError("");
  if (!text.trim()) {
    showStatus("");
    showError("There is nothing to translate: write something first.");
    byId("text").focus();
    return;
  }
  busy = true;
  byId("go").setAttribute("aria-disabled", "true");
  results.setAttribute("aria-busy", "true");
  showStatus("Translating …");
  const start = performance.now();
  try {
    const lines = await post({
      text, n_best: Number(byId("best").value), attention: byId("attention").checked,
    });
    const sources = text.split("\n");
    const shown = lines.map((line, i) => section(sources[i], line, i, lines.length));
    results.append(...shown.filter((_, i) => sources[i].trim()));
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    showStatus(`Translated in ${seconds} s.`);
  } catch (problem) {
    showStatus("");
    showError(problem.message);
  }
  busy = false;
  byId("go").removeAttribute("aria-disabled");
  results.removeAttribute("aria-busy");
}

async function post(request) {
  let response, answer;
  try {
    response = await fetch("/translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
    });
    answer = await response.json();
  } catch {
    throw new Error("No answer from the server. Is bleuprint serve still running?");
  }
  if (!response.ok) throw new Error(`The request was refused (${response.status}): ${answer.error}.`);
  return answer.lines;
}

// The translations and the attention of a line of text.
function section(source, line, index, count) {
  const [best] = line.translations;
  const made = make("section", {},
    make("h2", { textContent: count > 1 ? `Line ${index + 1}` : "Translation" }));
  const hint = (textContent) => made.append(make("p", { className: "hint", textContent }));
  if (count > 1) made.append(make("p", { className: "source", dir: "auto", lang: languages.source,
    textContent: source }));
  if (line.unknown.length) hint(`Not in the training text: ${line.unknown.join(", ")}.`);
  made.append(make("p", { className: "translation", dir: "auto", lang: languages.target,
    textContent: best.text }));
  for (const warning of line.warnings) {
    made.append(make("p", { className: "warning", textContent: `Warning: ${warning}.` }));
  }
  made.append(list(line.translations));
  if (line.attention) {
    line.attention.forEach((map, i) => made.append(
      ...attention(map, line.attention.length > 1 ? `, piece ${i + 1}` : "", `${index}-${i}`)));
  } else if (byId("attention").checked) {
    hint("The attention weights exceed the size of one answer: translate fewer or shorter lines.");
  }
  return made;
}

function list(translations) {
  const number = (textContent) => make("td", { className: "number", textContent });
  const rows = translations.map(({ text, score }, i) => make("tr", {},
    number(i + 1), number(score.toFixed(3)),
    make("td", { dir: "auto", lang: languages.target, textContent: text })));
  const heads = [["Rank", "number"], ["Score", "number"], ["Text", "text"]].map(
    ([textContent, className]) => make("th", { scope: "col", className, textContent }));
  return make("table", { className: "list" },
    make("caption", { textContent: "The best translations found; a higher score is likelier" }),
    make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
}

// A heading, two choices, and the table that they choose.
function attention(map, piece, id) {
  const layers = map.weights.length, heads = map.weights[0].length;
  const box = make("div", { className: "wide", tabIndex: 0, role: "region",
    ariaLabel: `Attention${piece}` });
  const numbered = (count, name) => Array.from({ length: count }, (_, i) => [i, name(i)]);
  const layer = choice(numbered(layers, (i) => `layer ${i + 1}`), { id: `layer-${id}` });
  const head = choice(numbered(heads + 1, (i) => i ? `head ${i}` : `mean of ${heads} heads`),
    { id: `head-${id}` });
  layer.value = layers - 1;
  const draw = () => {
    const chosen = map.weights[layer.value];
    const kept = head.value === "0" ? chosen : [chosen[head.value - 1]];
    const weight = (i, j) => kept.reduce((sum, each) => sum + each[i][j], 0) / kept.length;
    const names = [layer, head].map((select) => select.selectedOptions[0].textContent);
    box.replaceChildren(
      mapTable(map, weight, [languages.target, languages.source], names.join(", ")));
  };
  for (const select of [layer, head]) select.addEventListener("change", draw);
  draw();
  return [
    make("h3", { textContent: `Attention${piece}` }),
    make("p", { className: "hint", textContent:
      "A row is a token of the translation; its cells are the attention weights on the source, in per cent." }),
    make("div", { className: "row" },
      make("span", {}, make("label", { htmlFor: layer.id, textContent: "Layer " }), layer),
      make("span", {}, make("label", { htmlFor: head.id, textContent: "Head " }), head)),
    box,
  ];
}

byId("text").focus();
form.addEventListener("submit", (event) => {
  event.preventDefault();
  translate();
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    translate();
  }
});
