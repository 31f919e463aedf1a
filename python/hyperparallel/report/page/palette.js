// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The style's colours for canvases, read anew when the theme changes, and canvases that are sharp on any screen.

const palette = {};

function readPalette() {
  const probe = element("span");
  document.body.append(probe);
  const names = [...new Set(CATEGORIES.map(([name]) => name))];
  for (const name of [...names, "surface", "sunken", "raised", "line", "line-strong", "text", "quiet", "accent", "tier", "tier-edge",
    "limit", "module-even", "module-odd", "mark", "bubble"]) {
    probe.style.color = `var(--${name})`;
    palette[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  palette.sans = getComputedStyle(document.body).fontFamily;
  palette.on = {};
  for (const name of names) {
    const [red, green, blue] = palette[name].match(/[\d.]+/g).map((part) => channel(part / 255));
    const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    palette.on[name] = 1.05 / (light + 0.05) >= (light + 0.05) / 0.058 ? "#ffffff" : "#15171a";
  }
}

const channel = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);

// A context in CSS pixels.
function prepare(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  return context;
}

// Text that ends before a width; the average letter is measured once per font.
const letterWidths = new Map();

function fitted(context, text, width) {
  let letter = letterWidths.get(context.font);
  if (letter === undefined) {
    letter = context.measureText("abcdefghijklmnopqrstuvwxyz_0123456789.").width / 38;
    letterWidths.set(context.font, letter);
  }
  const room = Math.floor(width / letter);
  if (text.length <= room) return text;
  return room < 4 ? "" : text.slice(0, room - 1) + "…";
}

const bareName = (op) => op.replace(/^(hypershard|hypermpmd|offload|supernode|linalg|tensor)\./, "");
