// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timelines as they are drawn: columns of tasks, and for each stream the rows on which they lie.

async function readRuns() {
  const packed = Uint8Array.from(atob(byId("data").textContent.trim()), (letter) => letter.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(plain).json();
  return data.runs.map((run, index) => openRun(run, index));
}

function openRun(run, index) {
  const tasks = run.tasks;
  for (const name of ["start", "end"]) tasks[name] = Float64Array.from(tasks[name]);
  for (const name of ["op", "path", "kind", "bound", "reason"]) tasks[name] = Int32Array.from(tasks[name]);
  const opened = { ...run, index, count: tasks.start.length, lanes: lanesOf(run) };
  opened.own = { start: tasks.start, end: tasks.end, times: run.tiers.map((tier) => Float64Array.from(tier.times)) };
  opened.end = tasks.end.reduce((latest, end) => Math.max(latest, end), run.summary.seconds);
  opened.begin = tasks.start.reduce((first, start) => Math.min(first, start), 0);
  opened.category = categoriesOf(opened);
  stretch(opened, 1);
  return opened;
}

// Draws a run longer or shorter than it is; `own` keeps the true times.
function stretch(run, factor) {
  run.factor = factor;
  run.tasks.start = run.own.start.map((time) => time * factor);
  run.tasks.end = run.own.end.map((time) => time * factor);
  run.tiers.forEach((tier, index) => (tier.times = run.own.times[index].map((time) => time * factor)));
}

// Tasks are sorted by group, stream and start, so that a stream is a range of them. Those that overlap get rows of
// their own: the first row that is free, at most MOST_ROWS.
const MOST_ROWS = 5;

function lanesOf(run) {
  const { group, stream, start, end } = run.tasks;
  const lanes = [];
  for (let from = 0; from < start.length; ) {
    let to = from;
    while (to < start.length && group[to] === group[from] && stream[to] === stream[from]) to++;
    const rows = [];
    for (let task = from; task < to; task++) {
      let row = rows.findIndex((one) => end[one[one.length - 1]] <= start[task] + 1e-12);
      if (row < 0) row = rows.length < MOST_ROWS ? rows.push([]) - 1 : MOST_ROWS - 1;
      rows[row].push(task);
    }
    const own = run.groups[group[from]];
    lanes.push({
      group: group[from],
      name: own.streams[stream[from]].name,
      kind: own.streams[stream[from]].kind,
      busy: own.streams[stream[from]].busy,
      from,
      to,
      rows: rows.map((row) => Int32Array.from(row)),
    });
    from = to;
  }
  return lanes;
}

// Consecutive tasks of one module, of the first stream of each group that has any.
function modulesOf(run, lane) {
  const { path, start, end } = run.tasks;
  const spans = [];
  for (let task = lane.from; task < lane.to; task++) {
    const last = spans[spans.length - 1];
    // A pause longer than the module itself parts it: forward and backward of one module are two.
    const goesOn = last && last.path === path[task] && start[task] - last.end <= last.end - last.start;
    if (goesOn) last.end = end[task];
    else spans.push({ path: path[task], start: start[task], end: end[task] });
  }
  const named = spans.filter((span) => run.strings[span.path] !== "");
  return named.length > 1 ? named : [];
}

const CATEGORIES = [
  ["compute", "compute-bound"],
  ["memory", "memory-bound"],
  ["launch", "launch-bound"],
  ["compute", "matmul"],
  ["memory", "other kernels"],
  ["communication", "collective"],
  ["copy", "copy between tiers"],
  ["network", "send and receive"],
  ["other", "other"],
];

function categoriesOf(run) {
  const { bound, kind } = run.tasks;
  const found = new Uint8Array(run.count);
  const byBound = { compute: 0, memory: 1, launch: 2 };
  for (const lane of run.lanes) {
    const fixed = { communication: 5, h2d: 6, d2h: 6, network: 7 }[lane.kind];
    for (let task = lane.from; task < lane.to; task++) {
      if (fixed !== undefined) found[task] = fixed;
      else if (byBound[run.strings[bound[task]]] !== undefined) found[task] = byBound[run.strings[bound[task]]];
      else if (lane.kind === "compute") found[task] = run.strings[kind[task]] === "matmul" ? 3 : 4;
      else found[task] = 8;
    }
  }
  return found;
}

// The tasks that have every word in their operation, module or reason, by start.
function search(run, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const lower = run.strings.map((string) => string.toLowerCase());
  const holds = words.map((word) => lower.map((string) => string.includes(word)));
  const { op, path, reason, start } = run.tasks;
  const found = [];
  for (let task = 0; task < run.count; task++) {
    if (holds.every((has) => has[op[task]] || has[path[task]] || has[reason[task]])) found.push(task);
  }
  found.sort((a, b) => start[a] - start[b] || a - b);
  return found;
}

// The first of sorted values[at(i)] that is above a limit.
function upperBound(length, at, limit) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
