// Charts with data-axes: fitted to the lines that are shown, on a chosen scale; values on hover.
(() => {
  const svgOf = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  // From a number to its place between two ends, and back.
  const linear = { to: (v, [a, b]) => (v - a) / (b - a), from: (p, [a, b]) => a + p * (b - a) };
  const log = {
    to: (v, ends) => linear.to(Math.log(v), ends.map(Math.log)),
    from: (p, ends) => Math.exp(linear.from(p, ends.map(Math.log))),
  };

  // A chart as it was drawn, with the values of its lines.
  function read(svg) {
    const axes = JSON.parse(svg.dataset.axes), [left, top, right, bottom] = axes.box;
    const drawn = axes.log ? log : linear;
    const value = (x, y) => [linear.from((x - left) / (right - left), axes.x),
      drawn.from((bottom - y) / (bottom - top), axes.y)];
    const lines = [...svg.querySelectorAll('[id*="-of-"]')].map((group) => {
      const path = group.querySelector("path[d]:not(defs *)");
      const numbers = path.getAttribute("d").match(/-?[\d.]+/g).map(Number);
      const points = [];
      for (let i = 0; i < numbers.length; i += 2) points.push(value(numbers[i], numbers[i + 1]));
      const [, system, part] = /-of-(\d+)\.(\w+)$/.exec(group.id);
      return { group, path, points, system: Number(system), band: part === "band",
        marks: [...group.querySelectorAll("use")] };
    });
    return { ...axes, svg, lines, drawn };
  }

  function ticks([low, high], scale) {
    const found = [];
    if (scale === log && high > 10 * low) {
      const many = Math.log10(high / low) > 2.5;
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        for (const digit of many ? [1] : [1, 2, 5]) found.push(digit * 10 ** power);
      }
    } else {
      const power = 10 ** Math.floor(Math.log10((high - low) / 4));
      const step = [1, 2, 5, 10].find((each) => each * power * 5 >= high - low) * power;
      for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step || 0);
    }
    return found.filter((each) => low <= each && each <= high);
  }

  // Draws lines within limits: of x the end from `start` (0 to 1), of y those of `shown` there.
  function draw(chart, shown, scale, start) {
    const [left, top, right, bottom] = chart.box;
    const x = [linear.from(start, chart.x), chart.x[1]];
    const values = shown.flatMap(({ points }) => points)
      .filter(([at, y]) => x[0] <= at && (scale === linear || y > 0)).map(([, y]) => y);
    let low = Math.min(...values), high = Math.max(...values);
    if (!values.length) [low, high] = chart.y;
    if (low === high) [low, high] = scale === log ? [low / 2, high * 2] : [low - 1, high + 1];
    const y = [-0.05, 1.05].map((place) => scale.from(place, [low, high]));
    const place = ([at, v]) => [left + (right - left) * linear.to(at, x), bottom - (bottom - top)
      * (scale === log && v <= 0 ? -1 : scale.to(v, y))].map((each) => each.toFixed(2));
    for (const { path, points, marks, band } of chart.lines) {
      path.setAttribute("d", `M ${points.map((each) => place(each).join(" ")).join(" L ")}${band ? " z" : ""}`);
      marks.forEach((mark, i) => {
        const [across, down] = place(points[i]);
        mark.setAttribute("x", across);
        mark.setAttribute("y", down);
      });
    }
    axis("x", ticks(x, linear), (v) => place([v, y[0]])[0], left, right);
    axis("y", ticks(y, scale), (v) => place([x[0], v])[1], top, bottom);

    function axis(side, values, at, first, last) {
      const group = chart.svg.querySelector(`[id$="-${side}-axis"]`);
      for (const old of [...group.children]) if (/tick|own/.test(old.id)) old.remove();
      const own = svgOf("g", { id: `${group.id}-own`, class: "axis" });
      for (const v of values) {
        const p = at(v), text = v.toLocaleString("en", { maximumSignificantDigits: 3 });
        if (p < first - 0.1 || p > last + 0.1) continue;
        own.append(...side === "x"
          ? [svgOf("path", { d: `M ${p} ${top} V ${bottom}` }),
            svgOf("text", { x: p, y: bottom + 14, "text-anchor": "middle" }, text)]
          : [svgOf("path", { d: `M ${left} ${p} H ${right}` }),
            svgOf("text", { x: left - 5, y: Number(p) + 3.5, "text-anchor": "end" }, text)]);
      }
      group.prepend(own);
    }
    chart.now = { x, place };
  }

  const charts = [...document.querySelectorAll("svg[data-axes]")].map(read);
  if (!charts.length) return;
  const names = [...document.querySelector(".legend").querySelectorAll("label")]
    .map((label) => label.textContent);
  const box = document.querySelector("#curves .legend");
  const scales = choice([["", "as drawn"], ["linear", "linear"], ["log", "logarithmic"]]);
  const starts = choice([[0, "all"], [0.5, "the last half"], [0.75, "the last quarter"]]);
  const visible = ({ group }) => !group.classList.contains("off");
  const update = (all) => {
    for (const chart of charts) {
      const curves = box && chart.svg.closest("#curves");
      const scale = curves && { linear, log }[scales.value] || chart.drawn;
      const start = curves ? Number(starts.value) : 0;
      const shown = all === true ? chart.lines : chart.lines.filter(visible);
      // what was drawn is left as it is while nothing else is chosen
      if (chart.now || start || scale !== chart.drawn || shown.length < chart.lines.length) {
        draw(chart, shown, scale, start);
      }
    }
  };
  if (box) {
    const choices = make("div", { className: "choices" }, make("label", {}, "Vertical scale", scales),
      make("label", {}, "Updates", starts),
      make("span", { className: "hint", textContent: "Values: point at a chart." }));
    choices.addEventListener("change", update);
    box.before(choices);
  }
  document.addEventListener("lines", update);
  addEventListener("beforeprint", () => update(true));
  addEventListener("afterprint", () => update());
  update();

  // values of the point nearest to the pointer, the highest first, as lines are above each other
  for (const chart of charts) {
    const { svg, box: [left, top, right, bottom] } = chart;
    const guide = svgOf("path", { class: "guide" });
    const tip = make("div", { className: "tip", hidden: true });
    svg.append(guide);
    svg.after(tip);
    const short = (v) => v.toLocaleString("en", { maximumSignificantDigits: 4 });
    svg.addEventListener("pointermove", (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const limits = chart.now?.x ?? chart.x;
      const x = linear.from((at.x - left) / (right - left), limits);
      const near = (points) => points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
      const found = chart.lines.filter((line) => visible(line) && !line.band)
        .map(({ system, points }) => [system, ...near(points)]);
      tip.hidden = !found.length || at.x < left || at.x > right;
      if (tip.hidden) return guide.setAttribute("d", "");
      const nearest = near(found.map(([, each]) => [each]))[0];
      guide.setAttribute("d", `M ${left + (right - left) * linear.to(nearest, limits)} ${top} V ${bottom}`);
      const rows = found.filter(([, each]) => Math.abs(each - nearest) <= 0.02 * (limits[1] - limits[0]))
        .sort((a, b) => b[2] - a[2]).map(([system, each, y]) => {
          const band = chart.lines.find((line) => line.band && line.system === system);
          const ends = (band?.points ?? []).filter(([other]) => Math.abs(other - each) < 0.6)
            .map(([, v]) => v);
          const text = ends.length ? ` (${short(Math.min(...ends))} to ${short(Math.max(...ends))})` : "";
          return make("div", {}, `${names[system]} `, make("b", { textContent: short(y) }), text);
        });
      tip.replaceChildren(make("div", { className: "hint",
        textContent: `at ${Math.round(nearest).toLocaleString("en")}` }), ...rows);
    });
    svg.addEventListener("pointerleave", () => {
      tip.hidden = true;
      guide.setAttribute("d", "");
    });
  }
})();
