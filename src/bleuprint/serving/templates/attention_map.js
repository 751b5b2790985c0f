// A map of attention as a table. `weight(row, column)` is from 0 to 1; `languages` are those of
// the rows and of the columns.
function mapTable({ rows, columns }, weight, [beside, above], caption) {
  // a combining character gets a circle to combine with
  const head = (scope, lang, token) => make("th", { scope, lang },
    make("bdi", {}, /^\p{M}/u.test(token) ? `◌${token}` : token));
  const cell = (i, j) => {
    const step = Math.round(100 * weight(i, j));
    return make("td", { className: `s${step}`, textContent: step,
      title: `${rows[i]} ← ${columns[j]}: ${(100 * weight(i, j)).toFixed(1)} %` });
  };
  const heads = columns.map((token) => head("col", above, token));
  return make("table", { className: "map" }, make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, make("td"), ...heads)),
    make("tbody", {}, ...rows.map((token, i) =>
      make("tr", {}, head("row", beside, token), ...columns.map((_, j) => cell(i, j))))));
}
