// Returns an attention map as a table, a row for each output token and a column for each input token.
//
// `weight(row, column)` returns an attention weight from 0 to 1. `rowLanguage` and `columnLanguage`
// are the languages of the tokens, so that browsers choose the right fonts.
function mapTable({ rows, columns }, weight, [rowLanguage, columnLanguage], caption) {
  const columnHeads = columns.map((token) => tokenHead(token, "col", columnLanguage));
  const body = make("tbody");
  rows.forEach((rowToken, i) => {
    const tableRow = make("tr", {}, tokenHead(rowToken, "row", rowLanguage));
    columns.forEach((columnToken, j) => {
      tableRow.append(weightCell(weight(i, j), `${rowToken} ← ${columnToken}`));
    });
    body.append(tableRow);
  });
  return make("table", { className: "map" },
    make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, make("td"), ...columnHeads)),
    body);
}

// Returns a heading cell with a token; `scope` says whether it heads a row or a column.
function tokenHead(token, scope, lang) {
  // A combining character gets a dotted circle to combine with.
  const text = /^\p{M}/u.test(token) ? `◌${token}` : token;
  return make("th", { scope, lang }, make("bdi", {}, text));
}

// Returns a cell with a weight in per cent, whose class gives it a color.
function weightCell(weight, tokens) {
  const percent = Math.round(100 * weight);
  return make("td", {
    className: `s${percent}`,
    textContent: percent,
    title: `${tokens}: ${(100 * weight).toFixed(1)} %`,
  });
}
