// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers in words: three significant digits and a unit, as hyperparallel.report.terminal writes them; – is unknown.

const UNKNOWN = "–";
const GAP = "\u00a0";

function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(value, scales, smallest) {
  if (value === null || value === undefined) return UNKNOWN;
  for (const [factor, unit] of scales) {
    if (Math.abs(value) >= factor * 0.9995) return threeDigits(value / factor) + GAP + unit;
  }
  return smallest(value);
}

const SECONDS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
const BYTES = [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const LARGE = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

const seconds = (value) => scaled(value, SECONDS, (small) => (small ? threeDigits(small * 1e9) + GAP + "ns" : "0" + GAP + "s"));
const bytes = (value) => scaled(value, BYTES, (small) => small.toFixed(0) + GAP + "B");
const large = (value, unit) =>
  scaled(value, LARGE.map(([factor, prefix]) => [factor, prefix + unit]), (small) => small.toFixed(0) + GAP + unit);
const percent = (share) => (share === null || share === undefined ? UNKNOWN : (share * 100).toFixed(1) + GAP + "%");
const count = (value) => (value === null || value === undefined ? UNKNOWN : value.toLocaleString("en-US", { maximumFractionDigits: 1 }));
const signed = (value, write) => (value > 0 ? "+" : value < 0 ? "−" : "±") + write(Math.abs(value));

// An axis label: in the unit of the largest, with as many digits as tell neighbours apart.
function tick(value, step, largest) {
  const [factor, unit] = SECONDS.find(([size]) => Math.max(Math.abs(largest), step) >= size * 0.9995) || SECONDS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  return (value / factor).toFixed(digits) + GAP + unit;
}

// An element; text is always text, never markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) made.style.setProperty(key, text);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);
