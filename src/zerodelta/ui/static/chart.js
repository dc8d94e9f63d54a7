"use strict";
// Curves on logarithmic axes, as an SVG that takes its colors from the style sheet.

const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 5", "4 2", "1 4"];
const FRAME = { width: 420, height: 270, left: 58, right: 26, top: 10, bottom: 44 };

function element(name, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

function short(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e6 || size < 1e-3) return number.toExponential(size >= 1e6 && Number.isInteger(Math.log10(size)) ? 0 : 1).replace("e+", "e");
  return String(Number(number.toPrecision(3)));
}

function ticks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const within = (value) => value >= low * 0.999 && value <= high * 1.001;
  const powers = [], finer = [];
  for (let power = first; power <= last; power += 1) {
    powers.push(10 ** power);
    finer.push(10 ** power, 2 * 10 ** power, 5 * 10 ** power);
  }
  const whole = powers.filter(within), found = whole.length >= 3 ? whole : finer.filter(within);
  const step = Math.ceil(found.length / 6);  // all along the axis, and few enough to be read
  return found.filter((_, place) => place % step === 0);
}

function chart({ title, axis, x, lines, asked }) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const names = Object.keys(lines);
  const all = names.flatMap((name) => lines[name]).filter((value) => value !== null);
  if (x.length < 2 || !all.length) {
    caption.textContent = `${title}: no method applies near these numbers.`;
    figure.append(caption);
    return figure;
  }
  const low = Math.min(...all) / 1.15, high = Math.max(...all) * 1.15;
  const across = (value) => FRAME.left + (FRAME.width - FRAME.left - FRAME.right) *
    Math.log(value / x[0]) / Math.log(x[x.length - 1] / x[0]);
  const up = (value) => FRAME.height - FRAME.bottom - (FRAME.height - FRAME.top - FRAME.bottom) *
    Math.log(value / low) / Math.log(high / low);
  const svg = element("svg", {
    viewBox: `0 0 ${FRAME.width} ${FRAME.height}`, role: "img",
    "aria-label": `${title}. ${names.map((name) => pointsText(name, x, lines[name])).join(". ")}`,
  });
  const bottom = FRAME.height - FRAME.bottom, right = FRAME.width - FRAME.right;
  for (const value of ticks(low, high)) {
    element("line", { class: "grid", x1: FRAME.left, x2: right, y1: up(value), y2: up(value) }, svg);
    element("text", { x: FRAME.left - 6, y: up(value) + 4, "text-anchor": "end" }, svg).textContent = short(value);
  }
  for (const value of ticks(x[0], x[x.length - 1])) {
    element("line", { class: "grid", y1: FRAME.top, y2: bottom, x1: across(value), x2: across(value) }, svg);
    element("text", { x: across(value), y: bottom + 17, "text-anchor": "middle" }, svg).textContent = short(value);
  }
  element("line", { class: "axis", x1: FRAME.left, x2: right, y1: bottom, y2: bottom }, svg);
  element("text", { x: (FRAME.left + right) / 2, y: FRAME.height - 6, "text-anchor": "middle" }, svg).textContent = axis;
  if (asked >= x[0] && asked <= x[x.length - 1])
    element("line", { class: "asked", y1: FRAME.top, y2: bottom, x1: across(asked), x2: across(asked) }, svg);
  names.forEach((name, place) => {
    let path = "", pen = "M";
    lines[name].forEach((value, i) => {
      if (value === null) { pen = "M"; return; }
      path += `${pen}${across(x[i]).toFixed(1)} ${up(value).toFixed(1)}`;
      pen = "L";
    });
    if (path) element("path", {
      d: path, class: `curve s${place % 7}${place ? "" : " first"}`, "stroke-dasharray": DASHES[place % 7],
    }, svg);
  });
  const legend = document.createElement("ul");
  legend.className = "legend";
  if (names.length > 1) names.forEach((name, place) => {
    const item = document.createElement("li");
    const key = element("svg", { viewBox: "0 0 32 12", "aria-hidden": "true" });
    element("line", {
      x1: 0, x2: 32, y1: 6, y2: 6, class: `curve s${place % 7}${place ? "" : " first"}`, "stroke-dasharray": DASHES[place % 7],
    }, key);
    item.append(key, name);
    legend.append(item);
  });
  figure.append(caption, svg);
  if (names.length > 1) figure.append(legend);
  return figure;
}

function pointsText(name, x, line) {
  const known = line.map((value, i) => [x[i], value]).filter(([, value]) => value !== null);
  if (!known.length) return `${name}: does not apply`;
  const [first, last] = [known[0], known[known.length - 1]];
  return `${name}: from ${short(first[1])} at ${short(first[0])} to ${short(last[1])} at ${short(last[0])}`;
}
