// The page of `bleuprint serve`: sends the text of the form to the server, and shows the answer.

const byId = (id) => document.getElementById(id);
const form = byId("form");
const results = byId("results");
const errorBox = byId("error");
const languages = form.dataset;
let isTranslating = false;

function showStatus(text) {
  byId("status").textContent = text;
}

// Shows an error message; an empty one hides the box.
function showError(text) {
  errorBox.textContent = text;
  errorBox.hidden = !text;
}

// Translates the text of the form and shows a section for each line that is not empty.
async function translate() {
  const text = byId("text").value;
  if (isTranslating || !form.reportValidity()) return;
  results.replaceChildren();
  showError("");
  if (!text.trim()) {
    showStatus("");
    showError("There is nothing to translate: write something first.");
    byId("text").focus();
    return;
  }
  setTranslating(true);
  showStatus("Translating …");
  const start = performance.now();
  try {
    const lines = await post({
      text,
      n_best: Number(byId("best").value),
      attention: byId("attention").checked,
    });
    const sources = text.split("\n");
    lines.forEach((line, i) => {
      if (sources[i].trim()) results.append(lineSection(sources[i], line, i, lines.length));
    });
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    showStatus(`Translated in ${seconds} s.`);
  } catch (error) {
    showStatus("");
    showError(error.message);
  }
  setTranslating(false);
}

// Marks the button and the results as busy, or not; the button keeps its keyboard focus.
function setTranslating(value) {
  isTranslating = value;
  if (value) {
    byId("go").setAttribute("aria-disabled", "true");
    results.setAttribute("aria-busy", "true");
  } else {
    byId("go").removeAttribute("aria-disabled");
    results.removeAttribute("aria-busy");
  }
}

// Sends a request to the server, and returns the lines of its answer.
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

// Returns a section with the translations, the warnings and the attention of one line.
function lineSection(source, line, index, lineCount) {
  const title = lineCount > 1 ? `Line ${index + 1}` : "Translation";
  const section = make("section", {}, make("h2", { textContent: title }));
  if (lineCount > 1) {
    section.append(make("p", {
      className: "source", dir: "auto", lang: languages.source, textContent: source,
    }));
  }
  if (line.unknown.length) {
    section.append(hint(`Not in the training text: ${line.unknown.join(", ")}.`));
  }
  section.append(make("p", {
    className: "translation", dir: "auto", lang: languages.target,
    textContent: line.translations[0].text,
  }));
  for (const warning of line.warnings) {
    section.append(make("p", { className: "warning", textContent: `Warning: ${warning}.` }));
  }
  section.append(translationTable(line.translations));
  if (line.attention) {
    // A line that is too long for the model is translated in pieces, each with its map.
    line.attention.forEach((map, pieceIndex) => {
      const piece = line.attention.length > 1 ? `, piece ${pieceIndex + 1}` : "";
      section.append(...attentionMap(map, piece, `${index}-${pieceIndex}`));
    });
  } else if (byId("attention").checked) {
    section.append(hint(
      "The attention weights exceed the size of one answer: translate fewer or shorter lines."));
  }
  return section;
}

function hint(textContent) {
  return make("p", { className: "hint", textContent });
}

// Returns a table of translations with their ranks and scores.
function translationTable(translations) {
  const body = make("tbody");
  translations.forEach(({ text, score }, i) => {
    body.append(make("tr", {},
      make("td", { className: "number", textContent: i + 1 }),
      make("td", { className: "number", textContent: score.toFixed(3) }),
      make("td", { dir: "auto", lang: languages.target, textContent: text })));
  });
  return make("table", { className: "list" },
    make("caption", { textContent: "The best translations found; a higher score is likelier" }),
    make("thead", {}, make("tr", {},
      make("th", { scope: "col", className: "number", textContent: "Rank" }),
      make("th", { scope: "col", className: "number", textContent: "Score" }),
      make("th", { scope: "col", className: "text", textContent: "Text" }))),
    body);
}

// Returns the elements of an attention map: a heading, menus for layer and head, and the table.
//
// `map.weights` are indexed by layer, head, row and column. `piece` is added to the heading, and
// `id` to the ids of the menus.
function attentionMap(map, piece, id) {
  const layerCount = map.weights.length;
  const headCount = map.weights[0].length;
  const layerOptions = [];
  for (let layer = 0; layer < layerCount; layer++) {
    layerOptions.push([layer, `layer ${layer + 1}`]);
  }
  // The first head of the menu is the mean of all heads.
  const headOptions = [[0, `mean of ${headCount} heads`]];
  for (let head = 1; head <= headCount; head++) headOptions.push([head, `head ${head}`]);
  const layerMenu = choice(layerOptions, { id: `layer-${id}` });
  const headMenu = choice(headOptions, { id: `head-${id}` });
  layerMenu.value = layerCount - 1;
  const box = make("div", {
    className: "wide", tabIndex: 0, role: "region", ariaLabel: `Attention${piece}`,
  });

  // Shows the table of the chosen layer and head.
  function drawTable() {
    const heads = map.weights[layerMenu.value];
    const chosenHeads = headMenu.value === "0" ? heads : [heads[headMenu.value - 1]];
    const meanWeight = (i, j) => {
      let sum = 0;
      for (const head of chosenHeads) sum += head[i][j];
      return sum / chosenHeads.length;
    };
    const layerName = layerMenu.selectedOptions[0].textContent;
    const headName = headMenu.selectedOptions[0].textContent;
    const tokenLanguages = [languages.target, languages.source];
    box.replaceChildren(mapTable(map, meanWeight, tokenLanguages, `${layerName}, ${headName}`));
  }

  layerMenu.addEventListener("change", drawTable);
  headMenu.addEventListener("change", drawTable);
  drawTable();
  return [
    make("h3", { textContent: `Attention${piece}` }),
    hint("A row is a token of the translation; its cells are the attention weights on the source, "
      + "in per cent."),
    make("div", { className: "row" },
      make("span", {}, make("label", { htmlFor: layerMenu.id, textContent: "Layer " }), layerMenu),
      make("span", {}, make("label", { htmlFor: headMenu.id, textContent: "Head " }), headMenu)),
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
