// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The figures at the top: tiles, the bars of causes, and the comparison of two runs.

const CAUSES = { kernels: "Kernels", communication: "Exposed communication", transfer: "Exposed transfer", bubble: "Nothing runs" };

const fullestTier = (run) =>
  run.summary.tiers.reduce((best, tier) => {
    const rank = (one) => [one.used === null ? -1 : one.used, one.peak];
    const [a, b] = [rank(tier), best ? rank(best) : [-2, 0]];
    return a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]) ? tier : best;
  }, null);

const causeOf = (run, name) => run.summary.causes.find((cause) => cause.name === name);

// Each tile: a label, the number of a run, how it is written, a note below, and whether less is better.
const TILES = [
  { label: "Step", value: (run) => run.summary.seconds, write: seconds, less: true, note: firstStep },
  { label: "Compute busy", value: (run) => run.summary.utilisation, write: percent, points: true },
  { label: "MFU", value: (run) => run.summary.mfu, write: percent, points: true },
  { label: "Exposed communication", value: (run) => causeOf(run, "communication").seconds, write: seconds, less: true, note: (run) => shareNote(run, "communication") },
  { label: "Masked communication", value: (run) => run.summary.masked_communication ?? null, write: percent, points: true, optional: true },
  { label: "Exposed transfer", value: (run) => causeOf(run, "transfer").seconds, write: seconds, less: true, note: (run) => shareNote(run, "transfer"), optional: true },
  { label: "Nothing runs", value: (run) => causeOf(run, "bubble").seconds, write: seconds, less: true, note: (run) => shareNote(run, "bubble") },
  { label: "Fullest memory", value: (run) => (fullestTier(run) ? fullestTier(run).peak : null), write: bytes, less: true, note: tierNote },
  { label: "Work per device", value: (run) => run.summary.flops, write: (value) => large(value, "FLOP"), note: workNote },
];

function firstStep(run) {
  const first = run.summary.first_step_seconds;
  if (first === null || Math.abs(first - run.summary.seconds) <= run.summary.seconds * 1e-6) return `${count(run.count)} tasks`;
  return `first step ${seconds(first)}`;
}

const shareNote = (run, name) => `${percent(causeOf(run, name).share)} of step`;

function tierNote(run) {
  const tier = fullestTier(run);
  if (!tier) return "not recorded";
  return tier.capacity === null ? tier.name : `${tier.name}, ${percent(tier.used)} full`;
}

function workNote(run) {
  return run.summary.flops && run.summary.seconds ? large(run.summary.flops / run.summary.seconds, "FLOP/s") : "";
}

function drawTiles(runs) {
  const place = byId("tiles");
  place.classList.toggle("two", runs.length > 1);
  const wanted = TILES.filter((tile) => !tile.optional || runs.some((run) => tile.value(run) > 0)).filter((tile) => runs.some((run) => tile.value(run) !== null));
  place.replaceChildren(
    ...wanted.map((tile) => {
      const values = runs.map((run) => tile.value(run));
      const figures = runs.map((run, index) =>
        element(
          "dd",
          { "data-value": values[index] === null ? "" : String(values[index]), "data-tile": tile.label, title: values[index] === null ? "unknown" : String(values[index]) },
          runs.length > 1 ? element("span", { class: "who" }, "AB"[index]) : "",
          element("span", {}, tile.write(values[index])),
          index === 1 ? change(values, tile) : "",
        ),
      );
      const note = runs.length === 1 && tile.note ? element("dd", { class: "note" }, tile.note(runs[0])) : "";
      return element("div", { class: "tile" }, element("dt", {}, tile.label), ...figures, note);
    }),
  );
}

// The change from the first to the second value, as a share of the first; of shares, in points.
function change([a, b], { less, points }) {
  if (a === null || b === null || !a) return "";
  if (points) return element("small", { class: "delta" }, signed(b - a, (value) => (value * 100).toFixed(1) + GAP + "pt"));
  const part = b / a - 1;
  const text = Math.abs(part) < 1 ? signed(part, percent) : `×${threeDigits(b / a)}`;
  const verdict = less === undefined || Math.abs(part) < 0.0005 ? "" : part < 0 === less ? "better" : "worse";
  return element("small", { class: `delta ${verdict}` }, text);
}

function bar(causes, whole) {
  return element(
    "span",
    { class: "bar", role: "img", "aria-label": causes.map((cause) => `${CAUSES[cause.name]} ${seconds(cause.seconds)}`).join(", ") },
    ...causes
      .filter((cause) => cause.seconds > 0)
      .map((cause) => element("i", { class: `cause-${cause.name}`, style: { width: `${whole ? (cause.seconds / whole) * 100 : 0}%` }, title: `${CAUSES[cause.name]} ${seconds(cause.seconds)}` })),
  );
}

function drawBreakdown(runs) {
  const longest = Math.max(...runs.map((run) => run.summary.seconds));
  const stack = element(
    "div",
    { class: "stack" },
    ...runs.flatMap((run) => [
      runs.length > 1 ? element("span", { class: "name" }, `${"AB"[run.index]}  ${run.label}`) : element("span"),
      bar(run.summary.causes, longest),
      runs.length > 1 ? element("span", { class: "end" }, seconds(run.summary.seconds)) : element("span"),
    ]),
  );
  if (runs.length === 1) stack.style.setProperty("grid-template-columns", "0 1fr 0");
  if (runs.length === 1) stack.style.setProperty("column-gap", "0");
  const legend = element(
    "div",
    { class: "causes" },
    ...Object.keys(CAUSES).map((name) => {
      const parts = runs.map((run) => causeOf(run, name));
      const figures = parts.map((part) => seconds(part.seconds)).join(" → ");
      const known = parts.every((part) => part.seconds !== null);
      const below = runs.length > 1 ? (known ? signed(parts[1].seconds - parts[0].seconds, seconds) : "") : `${percent(parts[0].share)} of the step`;
      return element(
        "div",
        {},
        element("i", { class: `cause-${name}` }),
        element("span", {}, CAUSES[name]),
        element("span", { class: "figures" }, element("strong", {}, figures), element("span", { class: "quiet" }, below)),
      );
    }),
  );
  byId("breakdown").replaceChildren(stack, legend);
  drawGroups(runs);
}

const MOST_GROUPS = 64;

function drawGroups(runs) {
  const rows = runs.flatMap((run) => (run.groups.length > 1 ? run.groups.map((group) => ({ run, group })) : []));
  byId("by-group").hidden = rows.length === 0;
  byId("by-group").open = runs.length === 1 && rows.length <= 16;
  const longest = Math.max(...runs.map((run) => run.summary.seconds));
  byId("group-bars").replaceChildren(
    element(
      "div",
      { class: "stack thin" },
      ...rows.slice(0, MOST_GROUPS).flatMap(({ run, group }) => {
        const { communication, transfer, bubble } = group.exposed;
        const kernels = Math.max(0, run.summary.seconds - communication - transfer - bubble);
        const causes = [["kernels", kernels], ["communication", communication], ["transfer", transfer], ["bubble", bubble]];
        return [
          element("span", { class: "name" }, runs.length > 1 ? `${"AB"[run.index]}  ${group.name}` : group.name),
          bar(causes.map(([name, part]) => ({ name, seconds: part })), longest),
          element("span", { class: "end quiet" }, percent(run.summary.seconds ? kernels / run.summary.seconds : 0)),
        ];
      }),
    ),
    rows.length > MOST_GROUPS ? element("p", { class: "quiet" }, `The first ${MOST_GROUPS} of ${count(rows.length)} groups.`) : "",
  );
}

function drawComparison(runs) {
  byId("comparison").hidden = runs.length < 2;
  if (runs.length < 2) return;
  const [a, b] = runs;
  const note = `B takes ${seconds(b.summary.seconds)} where A takes ${seconds(a.summary.seconds)}`;
  const predicts = a.summary.kind === "simulated" && b.summary.kind === "measured";
  const off = a.summary.seconds / b.summary.seconds - 1;
  byId("comparison-note").textContent = predicts ? `${note}: the prediction is off by ${signed(off, percent)}.` : `${note}: ${signed(b.summary.seconds / a.summary.seconds - 1, percent)}.`;
  const place = byId("comparison-table");
  const show = (grouping) => {
    const uses = new Map();
    runs.forEach((run, index) => {
      for (const use of run.summary[grouping]) {
        if (!uses.has(use.name)) uses.set(use.name, { name: use.name, counts: [0, 0], seconds: [0, 0] });
        uses.get(use.name).counts[index] = use.count;
        uses.get(use.name).seconds[index] = use.seconds;
      }
    });
    const difference = (row) => row.seconds[1] - row.seconds[0];
    const choices = [["kinds", "By kind"], ["operations", "By operation"]].map(([name, text]) =>
      element("button", { type: "button", class: "button", "aria-pressed": String(name === grouping), onclick: () => show(name) }, text),
    );
    const side = (index) => ({ label: `${"AB"[index]} seconds`, value: (row) => row.seconds[index], show: (row) => seconds(row.seconds[index]) });
    const counted = (index) => ({ label: `${"AB"[index]} count`, wide: true, value: (row) => row.counts[index], show: (row) => count(row.counts[index]) });
    new Table(place, {
      name: "Comparison of operations",
      rows: [...uses.values()],
      sort: { column: 3, down: true },
      extra: element("span", { class: "group", role: "group", "aria-label": "Group operations" }, ...choices),
      columns: [
        { label: grouping === "kinds" ? "kind" : "operation", left: true, value: (row) => row.name, show: (row) => element("span", { class: "mono" }, row.name) },
        counted(0),
        counted(1),
        side(0),
        side(1),
        { label: "difference", wide: true, value: difference, show: (row) => signed(difference(row), seconds) },
        {
          label: "B / A",
          value: (row) => (row.seconds[0] ? row.seconds[1] / row.seconds[0] : null),
          show: (row) => (row.seconds[0] ? (row.seconds[1] / row.seconds[0]).toFixed(2) : UNKNOWN),
        },
      ],
    });
  };
  show("kinds");
}
