// Small stacked bar charts in SVG, each with a description and the numbers as titles.

import { h, s } from "../dom.js";

/** @typedef {{name: string, color: string}} Series */
/** @typedef {{label: string, values: number[]}} Group one bar: a value per series */
/** @typedef {{title: string, description: string, series: Series[], groups: Group[], format: (value: number) => string}} Chart */

const HEIGHT = 180;
const [TOP, RIGHT, BOTTOM, LEFT] = [10, 12, 22, 52];

/**
 * @param {Chart} chart
 */
export function barChart(chart) {
  const box = h("div.plot");
  // Text keeps its size: the drawing follows the width instead of being scaled.
  new ResizeObserver(() => box.replaceChildren(drawing(chart, Math.max(box.clientWidth, 240)))).observe(box);
  const { title, series } = chart;
  return h(
    "figure.chart",
    h("figcaption", title),
    box,
    series.length > 1 && h("ul.legend", series.map((part) => h("li", h("span.swatch", { style: { background: part.color } }), part.name))),
  );
}

/** @param {Chart} chart @param {number} width */
function drawing({ title, description, series, groups, format }, width) {
  const highest = Math.max(1, ...groups.map((group) => group.values.reduce((sum, value) => sum + value, 0)));
  const power = 10 ** Math.floor(Math.log10(highest));
  const most = power * ([1, 2, 2.5, 5].find((step) => power * step >= highest) ?? 10);
  const slot = (width - LEFT - RIGHT) / groups.length;
  const bar = Math.min(slot * 0.78, 44);
  const y = (/** @type {number} */ value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  const every = Math.ceil(64 / slot);
  const text = (/** @type {number} */ x, /** @type {number} */ top, /** @type {string} */ anchor, /** @type {string} */ words) => s("text", { class: "plot-text", x, y: top, "text-anchor": anchor }, words);
  const bars = groups.map(({ label, values }, index) => {
    const x = LEFT + slot * index + (slot - bar) / 2;
    let base = 0;
    const parts = values.map((value, part) => {
      base += value;
      return value > 0 && s("rect", { x, width: bar, y: y(base), height: y(base - value) - y(base), style: { fill: series[part].color } }, s("title", null, `${label}, ${series[part].name}: ${format(value)}`));
    });
    return [parts, index % every === 0 && text(x + bar / 2, HEIGHT - 6, "middle", label)];
  });
  const lines = [0, most / 2, most].map((value) => [s("line", { class: "plot-line", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }), text(LEFT - 6, y(value) + 4, "end", format(value))]);
  return s("svg", { width, height: HEIGHT, role: "img", "aria-label": `${title}. ${description}` }, lines, bars);
}
