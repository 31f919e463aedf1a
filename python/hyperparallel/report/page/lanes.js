// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The streams: an axis, then for each group its modules and a row of tasks for each stream. Only what is in sight is
// drawn, and tasks narrower than a pixel are drawn as one, so that a frame costs pixels * log(tasks), whatever the zoom.

const AXIS = 24;
const NARROW = 640;

class Lanes {
  constructor(runs, view) {
    this.runs = runs;
    this.view = view;
    this.canvas = byId("lanes");
    this.scroller = byId("scroller");
    this.selected = null;
    this.hovered = null;
    this.cursor = null;
    view.watch(() => this.draw());
    this.scroller.addEventListener("scroll", () => this.draw());
  }

  // Where everything lies; again when the page gets wider or narrower.
  layOut() {
    this.modules = this.runs.map((run) => {
      const first = new Map();
      for (const lane of run.lanes) if (lane.kind === "compute" && !first.has(lane.group)) first.set(lane.group, modulesOf(run, lane));
      return first;
    });
    this.width = this.scroller.clientWidth;
    this.isNarrow = this.width < NARROW;
    this.gutter = this.isNarrow ? 0 : 132;
    const streams = this.runs.reduce((sum, run) => sum + run.lanes.length, 0);
    this.row = streams <= 4 ? 32 : streams <= 10 ? 24 : 20;
    this.items = [];
    let y = AXIS + 4;
    const put = (item, height) => {
      this.items.push({ ...item, y, height });
      y += height;
    };
    for (const run of this.runs) {
      const several = run.groups.length > 1;
      if (this.runs.length > 1) put({ type: "run", text: run.label, run }, 24);
      let group = -1;
      for (const lane of run.lanes) {
        if (lane.group !== group) {
          group = lane.group;
          if (several) put({ type: "group", text: run.groups[group].name, run, group }, 20);
          const spans = this.modules[run.index].get(group) || [];
          if (spans.length) put({ type: "modules", spans, run }, 17);
        }
        if (this.isNarrow) put({ type: "label", text: lane.name, run, lane }, 15);
        lane.rows.forEach((ids, index) => put({ type: "row", ids, lane, run, index }, this.row));
        y += 4;
      }
      y += 6;
    }
    this.total = y;
    this.height = Math.min(this.total, Math.round(Math.min(window.innerHeight * 0.62, 560)));
    byId("spacer").style.height = `${this.total - this.height}px`;
  }

  get pixels() {
    return this.width - this.gutter;
  }

  x(time) {
    return this.gutter + ((time - this.view.from) / (this.view.to - this.view.from)) * this.pixels;
  }

  time(x) {
    return this.view.from + ((x - this.gutter) / this.pixels) * (this.view.to - this.view.from);
  }

  draw() {
    const context = prepare(this.canvas, this.width, this.height);
    const top = this.scroller.scrollTop;
    this.drawGrid(context);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, this.width, this.height - AXIS);
    context.clip();
    context.translate(0, -top);
    for (const item of this.items) {
      if (item.y + item.height < top + AXIS || item.y > top + this.height) continue;
      if (item.type === "row") this.drawRow(context, item);
      else if (item.type === "modules") this.drawModules(context, item);
      else this.drawText(context, item);
    }
    this.drawMarks(context);
    context.restore();
    this.drawCursor(context);
  }

  drawGrid(context) {
    const { step, found } = ticks(this.view.from, this.view.to, this.pixels);
    context.font = `11px ${palette.sans}`;
    context.fillStyle = palette.line;
    for (const time of found) context.fillRect(Math.round(this.x(time)), AXIS - 5, 1, this.height);
    context.fillRect(0, AXIS, this.width, 1);
    context.fillStyle = palette.quiet;
    for (const time of found) {
      const label = tick(time, step, this.view.to);
      const width = context.measureText(label).width;
      const left = Math.min(Math.max(this.x(time) - width / 2, this.gutter + 2), this.width - width - 4);
      context.fillText(label, left, 10);
    }
    for (const run of this.runs) {
      const end = this.x(run.summary.seconds * run.factor);
      if (end > this.gutter && end < this.width - 1) {
        context.fillStyle = palette["line-strong"];
        context.fillRect(Math.round(end), AXIS, 1, this.height);
      }
    }
  }

  drawText(context, item) {
    const strong = item.type !== "label";
    context.font = `${item.type === "run" ? 650 : strong ? 560 : 400} ${strong ? 12 : 11}px ${palette.sans}`;
    context.fillStyle = strong ? palette.text : palette.quiet;
    const text = item.type === "run" && this.runs.length > 1 ? `${"AB"[item.run.index]}  ${item.text}` : item.text;
    context.fillText(fitted(context, text, this.width - 24), 12, item.y + item.height / 2 + 1);
  }

  drawModules(context, item) {
    context.font = `10.5px ${palette.sans}`;
    if (this.gutter) {
      context.fillStyle = palette.quiet;
      context.fillText("modules", 12, item.y + item.height / 2);
    }
    const spans = item.spans;
    const first = upperBound(spans.length, (index) => spans[index].end, this.view.from);
    let drawn = -1;
    for (let index = first; index < spans.length && spans[index].start < this.view.to; index++) {
      const left = Math.max(this.x(spans[index].start), this.gutter);
      const right = Math.min(this.x(spans[index].end), this.width);
      if (right < drawn + 1) continue;
      drawn = right;
      context.fillStyle = palette[index % 2 ? "module-odd" : "module-even"];
      context.fillRect(left, item.y + 1, Math.max(right - left - 0.75, 0.75), item.height - 4);
      const text = item.run.strings[spans[index].path];
      const room = right - left - 8;
      if (room < 24) continue;
      context.fillStyle = palette.text;
      const whole = fitted(context, text, room);
      context.fillText(whole === text ? text : fitted(context, text.split(".").slice(-2).join("."), room), left + 4, item.y + item.height / 2 - 1);
    }
  }

  drawRow(context, item) {
    const { run, ids, lane } = item;
    const { start, end, op } = run.tasks;
    const { from, to } = this.view;
    const scale = this.pixels / (to - from);
    const left = this.gutter;
    const height = this.row - 3;
    const y = item.y + 1;
    if (this.gutter && item.index === 0) {
      context.font = `12px ${palette.sans}`;
      context.fillStyle = palette.text;
      context.fillText(fitted(context, lane.name, this.gutter - 20), 12, item.y + this.row / 2);
    }
    context.fillStyle = palette.sunken;
    context.fillRect(left, y, this.width - left, height);
    context.font = `11px ${palette.sans}`;
    const names = CATEGORIES;
    let index = upperBound(ids.length, (i) => end[ids[i]], from);
    while (index < ids.length && start[ids[index]] < to) {
      const task = ids[index];
      const x0 = left + (start[task] - from) * scale;
      const x1 = left + (end[task] - from) * scale;
      if (x1 - x0 >= 1.5) {
        const category = names[run.category[task]][0];
        const faint = run.found && run.before[task + 1] === run.before[task];
        context.globalAlpha = faint ? 0.16 : 1;
        context.fillStyle = palette[category];
        const begin = Math.max(x0, left);
        const width = Math.min(x1, this.width) - begin;
        context.fillRect(begin, y, width > 3 ? width - 0.75 : width, height);
        if (width > 30) {
          context.fillStyle = faint ? palette.text : palette.on[category];
          const text = bareName(run.strings[op[task]]);
          context.fillText(fitted(context, text, width - 9), begin + 5, y + height / 2 + 0.5);
        }
        index++;
        continue;
      }
      // All tasks that end within this pixel as one; the longest of the first few gives the colour.
      const pixel = Math.floor(x0);
      const limit = from + (pixel + 1 - left) / scale;
      const next = Math.max(upperBound(ids.length, (i) => end[ids[i]], limit), index + 1);
      let longest = task;
      for (let i = index; i < Math.min(next, index + 16); i++) {
        if (end[ids[i]] - start[ids[i]] > end[longest] - start[longest]) longest = ids[i];
      }
      const last = ids[next - 1];
      const faint = run.found && run.before[last + 1] === run.before[task];
      context.globalAlpha = faint ? 0.16 : 1;
      context.fillStyle = palette[names[run.category[longest]][0]];
      const begin = Math.max(next > index + 1 ? pixel : x0, left);
      context.fillRect(begin, y, Math.max(left + (end[last] - from) * scale - begin, 1), height);
      index = next;
    }
    context.globalAlpha = 1;
  }

  // The outlines of the selected and the hovered task.
  drawMarks(context) {
    for (const [mark, width] of [[this.hovered, 1], [this.selected, 2]]) {
      if (!mark) continue;
      const item = this.itemOf(mark);
      if (!item) continue;
      const { start, end } = mark.run.tasks;
      const x0 = Math.max(this.x(start[mark.task]), this.gutter);
      const x1 = Math.min(this.x(end[mark.task]), this.width);
      if (x1 < this.gutter || x0 > this.width) continue;
      context.strokeStyle = palette.mark;
      context.lineWidth = width;
      context.strokeRect(x0 - 0.5, item.y + 0.5, Math.max(x1 - x0, 2), this.row - 2);
    }
  }

  drawCursor(context) {
    if (this.cursor === null) return;
    const x = this.x(this.cursor);
    if (x < this.gutter || x > this.width) return;
    context.fillStyle = palette["line-strong"];
    context.fillRect(Math.round(x), AXIS, 1, this.height);
  }

  laneOf({ run, task }) {
    return run.lanes[upperBound(run.lanes.length, (index) => run.lanes[index].from, task) - 1];
  }

  itemOf(mark) {
    const lane = this.laneOf(mark);
    return this.items.find((item) => item.type === "row" && item.lane === lane && holdsId(item.ids, mark.task));
  }

  // The task at a place of the canvas: the nearest within a few pixels of its row.
  taskAt(x, y) {
    if (x < this.gutter || y < AXIS) return null;
    const below = y + this.scroller.scrollTop;
    const item = this.items.find((one) => one.type === "row" && below >= one.y && below < one.y + one.height);
    if (!item) return null;
    const { start, end } = item.run.tasks;
    const time = this.time(x);
    const slack = (3 / this.pixels) * (this.view.to - this.view.from);
    const index = upperBound(item.ids.length, (i) => start[item.ids[i]], time) - 1;
    let best = null;
    let distance = slack;
    for (const near of [index, index + 1]) {
      const task = item.ids[near];
      if (task === undefined) continue;
      const off = Math.max(start[task] - time, time - end[task], 0);
      if (off < distance || (off === 0 && best === null)) {
        best = { run: item.run, task };
        distance = off;
      }
    }
    return best;
  }

  select(mark, reveal = true) {
    this.selected = mark;
    if (mark && reveal) {
      const { start, end } = mark.run.tasks;
      this.view.reveal(start[mark.task], end[mark.task], this.pixels);
      const item = this.itemOf(mark);
      const top = this.scroller.scrollTop;
      if (item && (item.y < top + AXIS || item.y + item.height > top + this.height)) {
        this.scroller.scrollTop = item.y - this.height / 2;
      }
    }
    byId("detail").replaceChildren(...this.detail(mark));
    this.view.changed();
  }

  detail(mark) {
    if (!mark) return [element("span", { class: "quiet" }, "Select a task with a click or the arrow keys.")];
    const facts = factsOf(mark).map(([name, value]) => `${name} ${value}`);
    return [element("b", {}, mark.run.strings[mark.run.tasks.op[mark.task]]), facts.join(" · ")];
  }

  // The task beside the selected one in its stream, or the first in sight.
  step(by) {
    if (!this.selected) return this.select(this.firstInSight());
    const { run, task } = this.selected;
    const lane = this.laneOf(this.selected);
    this.select({ run, task: Math.min(Math.max(task + by, lane.from), lane.to - 1) });
  }

  // The task at the same time in the stream above or below.
  cross(by) {
    if (!this.selected) return this.select(this.firstInSight());
    const every = this.runs.flatMap((run) => run.lanes.map((lane) => ({ run, lane })));
    const here = this.laneOf(this.selected);
    const { run, lane } = every[Math.min(Math.max(every.findIndex((one) => one.lane === here) + by, 0), every.length - 1)];
    if (lane === here) return;
    const times = this.selected.run.tasks;
    const middle = (times.start[this.selected.task] + times.end[this.selected.task]) / 2;
    const index = upperBound(lane.to - lane.from, (i) => run.tasks.start[lane.from + i], middle) - 1;
    this.select({ run, task: lane.from + Math.max(index, 0) });
  }

  firstInSight() {
    for (const run of this.runs) {
      for (const lane of run.lanes) {
        const index = upperBound(lane.to - lane.from, (i) => run.tasks.end[lane.from + i], this.view.from);
        if (lane.from + index < lane.to) return { run, task: lane.from + index };
      }
    }
    return null;
  }

  ends(last) {
    const run = this.selected ? this.selected.run : this.runs[0];
    const lane = this.selected ? this.laneOf(this.selected) : run.lanes[0];
    if (lane) this.select({ run, task: last ? lane.to - 1 : lane.from });
  }
}

function holdsId(ids, task) {
  const index = upperBound(ids.length, (i) => ids[i], task) - 1;
  return index >= 0 && ids[index] === task;
}

// What is known of a task, in words; what is unknown is left out.
function factsOf({ run, task }) {
  const tasks = run.tasks;
  const lasts = run.own.end[task] - run.own.start[task];
  const facts = [];
  const add = (name, value) => value !== null && value !== undefined && facts.push([name, value]);
  if (run.strings[tasks.path[task]]) add("in", run.strings[tasks.path[task]]);
  add("takes", seconds(lasts));
  add("starts at", seconds(run.own.start[task]));
  add("of the step", run.summary.seconds ? percent(lasts / run.summary.seconds) : null);
  const rate = (value, unit) => (lasts > 0 ? ` (${large(value / lasts, unit)}/s)` : "");
  if (tasks.flops[task]) add("work", large(tasks.flops[task], "FLOP") + rate(tasks.flops[task], "FLOP"));
  if (tasks.bytes[task]) add("bytes", bytes(tasks.bytes[task]) + rate(tasks.bytes[task], "B"));
  const bound = run.strings[tasks.bound[task]];
  if (tasks.received[task]) add("received", bytes(tasks.received[task]) + rate(tasks.received[task], "B"));
  else if (bound === "communication" && tasks.received[task] === 0) add("received", "nothing");
  if (bound && bound !== "none") add("bound by", bound);
  if (run.strings[tasks.reason[task]]) add("reason", run.strings[tasks.reason[task]]);
  return facts;
}
