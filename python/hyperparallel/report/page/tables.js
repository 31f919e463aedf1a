// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tables that sort by any column, and are filtered by words.

const FIRST_ROWS = 12;

// columns: {label, value(row) to sort by, show(row) a text or a node, left, wide: not on narrow screens, ascending}.
class Table {
  constructor(place, { name, columns, rows, sort, filter = null, extra = null, first = FIRST_ROWS }) {
    // A column of which nothing is known is left out.
    const known = columns.filter((column, index) => index === 0 || !rows.length || rows.some((row) => ![null, undefined].includes(column.value(row))));
    const by = known.indexOf(columns[sort.column]);
    Object.assign(this, { columns: known, rows, filter, first, sort: by < 0 ? { column: 0, down: false } : { column: by, down: sort.down } });
    this.words = [];
    this.body = element("tbody");
    this.foot = element("tfoot");
    this.heads = known.map((column, index) =>
      element(
        "th",
        { scope: "col", class: [column.left ? "left" : "", column.wide ? "wide" : ""].join(" ").trim() || null },
        element("button", { type: "button", onclick: () => this.sortBy(index) }, element("span", { class: "arrow", "aria-hidden": "true" }), column.label),
      ),
    );
    const table = element("table", { "aria-label": name }, element("thead", {}, element("tr", {}, ...this.heads)), this.body, this.foot);
    const bar = filter || extra ? element("div", { class: "tablebar" }, filter ? this.searchBox(filter.label) : "", extra || "") : "";
    place.replaceChildren(element("div", { class: "tablebox" }, bar, element("div", { class: "tablewrap" }, table)));
    this.draw();
  }

  searchBox(label) {
    const box = element("input", { type: "search", placeholder: label, autocomplete: "off", spellcheck: "false" });
    box.addEventListener("input", () => {
      this.words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.draw();
    });
    return element("label", { class: "search" }, element("span", { class: "visually-hidden" }, label), box);
  }

  sortBy(index) {
    const same = this.sort.column === index;
    this.sort = { column: index, down: same ? !this.sort.down : !this.columns[index].left };
    this.draw();
  }

  draw() {
    const { column, down } = this.sort;
    const value = this.columns[column].value;
    const kept = this.words.length ? this.rows.filter((row) => this.words.every((word) => this.filter.text(row).includes(word))) : this.rows.slice();
    kept.sort((a, b) => compareValues(value(a), value(b)) * (down ? -1 : 1));
    this.heads.forEach((head, index) => {
      if (index === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
      head.querySelector(".arrow").textContent = index === column ? (down ? "↓" : "↑") : "";
    });
    const shown = kept.slice(0, this.first);
    this.body.replaceChildren(
      ...shown.map((row) =>
        element(
          "tr",
          {},
          ...this.columns.map((one) => element("td", { class: [one.left ? "left" : "", one.wide ? "wide" : "", one.share ? "share" : ""].join(" ").trim() || null }, one.show(row))),
        ),
      ),
    );
    const width = { colspan: this.columns.length };
    if (!kept.length) this.foot.replaceChildren(element("tr", {}, element("td", width, this.words.length ? "Nothing matches." : "None.")));
    else if (kept.length > shown.length) {
      const more = element("button", { type: "button", class: "button" }, `Show all ${count(kept.length)}`);
      more.addEventListener("click", () => {
        this.first = Infinity;
        this.draw();
      });
      this.foot.replaceChildren(element("tr", {}, element("td", width, more)));
    } else this.foot.replaceChildren();
  }
}

function compareValues(a, b) {
  if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b), "en", { numeric: true });
  return (a === null ? -Infinity : a) - (b === null ? -Infinity : b);
}

// A share of the step as a bar and a figure.
const meter = (share) =>
  element(
    "span",
    { class: "meter" },
    element("i", { style: { "--part": `${Math.min(Math.max(share || 0, 0), 1) * 100}%` }, "aria-hidden": "true" }),
    element("span", { class: "figure" }, percent(share)),
  );

function operationsTable(run) {
  const groupings = { operation: run.summary.operations, module: modulesUse(run), kind: run.summary.kinds };
  const named = Object.entries(groupings).filter(([, rows]) => rows.length);
  const place = byId("operations-table");
  const show = (grouping) => {
    const buttons = named.map(([name]) =>
      element("button", { type: "button", class: "button", "aria-pressed": String(name === grouping), onclick: () => show(name) }, `By ${name}`),
    );
    const rate = (row) => (row.flops && row.seconds ? row.flops / row.seconds : null);
    new Table(place, {
      name: `Operations by ${grouping}`,
      rows: groupings[grouping],
      sort: { column: 3, down: true },
      extra: element("span", { class: "group", role: "group", "aria-label": "Group operations" }, ...buttons),
      columns: [
        { label: grouping, left: true, value: (row) => row.name, show: (row) => element("span", { class: "mono" }, row.name) },
        { label: "kind", left: true, wide: true, value: (row) => row.kind, show: (row) => row.kind },
        { label: "count", wide: true, value: (row) => row.count, show: (row) => count(row.count) },
        { label: "seconds", value: (row) => row.seconds, show: (row) => seconds(row.seconds) },
        { label: "of the step", share: true, value: (row) => row.share, show: (row) => meter(row.share) },
        { label: "work", wide: true, value: (row) => row.flops || null, show: (row) => large(row.flops || null, "FLOP") },
        { label: "bytes", wide: true, value: (row) => row.bytes || null, show: (row) => bytes(row.bytes || null) },
        { label: "FLOP/s", wide: true, value: rate, show: (row) => large(rate(row), "FLOP/s") },
      ].filter((column) => grouping === "operation" || column.label !== "kind"),
    });
  };
  show("operation");
}

// Kernels and collectives by module, of the mean device.
function modulesUse(run) {
  const { path, group, flops, bytes: sizes } = run.tasks;
  const { start, end } = run.own;
  const devices = run.groups.reduce((sum, one) => sum + one.devices, 0) || 1;
  const uses = new Map();
  for (let task = 0; task < run.count; task++) {
    const name = run.strings[path[task]] || "(none)";
    let use = uses.get(name);
    if (!use) uses.set(name, (use = { name, kind: "", count: 0, seconds: 0, share: 0, flops: 0, bytes: 0 }));
    use.count += run.groups[group[task]].devices / devices;
    use.seconds += ((end[task] - start[task]) * run.groups[group[task]].devices) / devices;
    use.flops += flops[task] || 0;
    use.bytes += sizes[task] || 0;
  }
  if (uses.size === 1 && uses.has("(none)")) return [];
  for (const use of uses.values()) use.share = run.summary.seconds ? use.seconds / run.summary.seconds : 0;
  return [...uses.values()];
}

function collectivesTable(run) {
  byId("communication").hidden = !run.summary.collectives.length && !run.summary.links.length;
  if (!run.summary.collectives.length) return byId("collectives-table").replaceChildren();
  const rate = (row) => (row.seconds ? row.bytes_received / row.seconds : null);
  const hidden = (row) => (row.exposed_seconds === null || !row.seconds ? null : 1 - row.exposed_seconds / row.seconds);
  new Table(byId("collectives-table"), {
    name: "Collectives",
    rows: run.summary.collectives,
    sort: { column: 3, down: true },
    columns: [
      { label: "collective", left: true, value: (row) => row.op, show: (row) => element("span", { class: "mono" }, bareName(row.op)) },
      { label: "count", value: (row) => row.count, show: (row) => count(row.count) },
      { label: "received", wide: true, value: (row) => row.bytes_received, show: (row) => bytes(row.bytes_received) },
      { label: "seconds", value: (row) => row.seconds, show: (row) => seconds(row.seconds) },
      { label: "exposed", value: (row) => row.exposed_seconds, show: (row) => seconds(row.exposed_seconds) },
      { label: "hidden", wide: true, value: hidden, show: (row) => percent(hidden(row)) },
      { label: "rate", wide: true, value: rate, show: (row) => large(rate(row), "B/s") },
    ],
  });
}

function linksTable(run) {
  if (!run.summary.links.length) return byId("links-table").replaceChildren();
  new Table(byId("links-table"), {
    name: "Links",
    rows: run.summary.links,
    sort: { column: 4, down: true },
    columns: [
      { label: "link", left: true, value: (row) => row.name, show: (row) => element("span", { class: "mono" }, row.name) },
      { label: "kind", left: true, wide: true, value: (row) => row.kind, show: (row) => row.kind },
      { label: "bandwidth", wide: true, value: (row) => row.bandwidth, show: (row) => large(row.bandwidth, "B/s") },
      { label: "carried", value: (row) => row.bytes, show: (row) => bytes(row.bytes) },
      { label: "used", share: true, value: (row) => row.utilisation, show: (row) => meter(row.utilisation) },
    ],
  });
}

// `[{"dp", "tp"}, {}]` is [["dp", "tp"], []].
function axesOf(sharding) {
  const dimensions = sharding.slice(0, sharding.indexOf("]") + 1);
  return [...dimensions.matchAll(/\{([^{}]*)\}/g)].map(([, inside]) =>
    inside.split(",").map((axis) => axis.trim().replace(/"/g, "")).filter((axis) => axis && axis !== "?"),
  );
}

function shapeOf([, , shape, , sharding]) {
  if (!shape.length) return element("span", { class: "quiet" }, "scalar");
  const axes = axesOf(sharding);
  return element(
    "span",
    {},
    ...shape.flatMap((size, index) => [
      index ? element("span", { class: "times" }, "×") : "",
      String(size),
      ...(axes[index] || []).map((axis) => element("span", { class: "axis", title: `split over ${axis}` }, axis)),
    ]),
  );
}

function tensorsTable(run) {
  const elements = (row) => row[2].reduce((product, size) => product * size, 1);
  byId("sharding").hidden = run.tensors.length === 0;
  if (!run.tensors.length) return;
  const total = run.tensors.reduce((sum, row) => sum + (row[5] || 0), 0);
  byId("sharding-note").textContent = `${count(run.tensors.length)} tensors, ${bytes(total)} on each device.`;
  new Table(byId("tensors-table"), {
    name: "Tensors",
    rows: run.tensors,
    sort: { column: 4, down: true },
    filter: {
      label: "Filter by name, role, type, axis",
      text: (row) => [row[0], row[1], row[2].join("x"), row[3], row[4]].join(" ").toLowerCase(),
    },
    columns: [
      {
        label: "tensor",
        left: true,
        value: (row) => row[0],
        show: (row) => element("span", { class: "mono" }, row[0], element("span", { class: "under" }, `${row[1]} ${row[3]}, `, shapeOf(row))),
      },
      { label: "role", left: true, wide: true, value: (row) => row[1], show: (row) => row[1] },
      { label: "type", left: true, wide: true, value: (row) => row[3], show: (row) => row[3] },
      { label: "shape and split", left: true, wide: true, value: elements, show: shapeOf },
      { label: "on a device", value: (row) => row[5], show: (row) => bytes(row[5]) },
      { label: "sharding", left: true, wide: true, value: (row) => row[4], show: (row) => element("span", { class: "mono quiet" }, row[4]) },
    ],
  });
}
