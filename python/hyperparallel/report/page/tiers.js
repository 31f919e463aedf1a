// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How full each memory tier is over the step, on the timeline's axis, against its capacity; and the overview above.

const TIER = 58;
const SHOWN_TIERS = 4;
const MOST_TIERS = 48;

class Memory {
  constructor(runs, view, lanes) {
    this.view = view;
    this.lanes = lanes;
    this.canvas = byId("memory");
    const every = runs
      .flatMap((run) => run.tiers.map((tier) => ({ run, tier, name: this.nameOf(run, tier, runs.length > 1) })))
      .sort((a, b) => a.run.index - b.run.index || fullness(b.tier) - fullness(a.tier));
    this.charts = every.filter((chart) => chart.tier.times.length);
    this.all = false;
    view.watch(() => this.draw());
    this.offerMore(every.filter((chart) => !chart.tier.times.length));
    this.canvas.hidden = this.charts.length === 0;
    this.canvas.setAttribute("aria-label", this.charts.map((chart) => `${chart.name}: at most ${wordsOf(chart.tier)}`).join("; "));
  }

  // A button for the tiers that are not shown, and a line for those of which only the peak is known.
  offerMore(peaks) {
    const button = byId("memory-more").firstElementChild;
    const most = Math.min(this.charts.length, MOST_TIERS);
    button.hidden = this.charts.length <= SHOWN_TIERS;
    button.textContent = most < this.charts.length ? `Show ${most} of ${count(this.charts.length)} tiers` : `Show all ${most} tiers`;
    button.addEventListener("click", () => {
      this.all = true;
      button.hidden = true;
      byId("memory-more").hidden = peaks.length === 0;
      this.draw();
    });
    const words = peaks.slice(0, 8).map((chart) => `${chart.name} ${wordsOf(chart.tier)}`);
    byId("memory-note").textContent = words.length ? `At most: ${words.join(" · ")}${peaks.length > 8 ? " · …" : ""}` : "";
    byId("memory-more").hidden = button.hidden && !words.length;
  }

  nameOf(run, tier, both) {
    const group = run.groups.length > 1 ? `${run.groups[tier.group].name}, ` : "";
    return `${both ? `${"AB"[run.index]} ` : ""}${group}${tier.name}`;
  }

  get shown() {
    if (this.all) return this.charts.slice(0, MOST_TIERS);
    const runs = [...new Set(this.charts.map((chart) => chart.run))];
    const each = Math.max(1, Math.floor(SHOWN_TIERS / Math.max(1, runs.length)));
    return this.charts.length <= SHOWN_TIERS ? this.charts : runs.flatMap((run) => this.charts.filter((chart) => chart.run === run).slice(0, each));
  }

  draw() {
    if (!this.charts.length) return;
    const top = this.lanes.isNarrow ? 16 : 0;
    const height = TIER + top;
    const context = prepare(this.canvas, this.lanes.width, this.shown.length * height + 8);
    this.shown.forEach((chart, index) => this.drawChart(context, chart, 4 + index * height + top));
    const cursor = this.lanes.cursor;
    if (cursor !== null && this.lanes.x(cursor) > this.lanes.gutter) {
      context.fillStyle = palette["line-strong"];
      context.fillRect(Math.round(this.lanes.x(cursor)), 0, 1, this.shown.length * height + 8);
    }
  }

  drawChart(context, { tier, name }, y) {
    const { gutter, width } = this.lanes;
    const floor = y + TIER - 8;
    const tall = TIER - 18;
    const onScale = tier.capacity !== null && tier.peak > tier.capacity * 0.2;
    const highest = (onScale ? Math.max(tier.capacity, tier.peak) : tier.peak) || 1;
    const level = (size) => floor - (size / highest) * tall;
    context.fillStyle = palette.sunken;
    context.fillRect(gutter, floor - tall, width - gutter, tall);
    const line = this.outline(tier, level);
    if (line.length) {
      context.beginPath();
      context.moveTo(line[0][0], floor);
      for (const [x, at] of line) context.lineTo(x, at);
      context.lineTo(line[line.length - 1][0], floor);
      context.fillStyle = palette.tier;
      context.fill();
      context.beginPath();
      for (const [x, at] of line) context.lineTo(x, at);
      context.strokeStyle = palette["tier-edge"];
      context.lineWidth = 1.25;
      context.stroke();
    }
    if (onScale) this.rule(context, level(tier.capacity), palette.limit, [5, 4]);
    this.label(context, tier, name, y, onScale);
  }

  // The step line, the highest and lowest value of each pixel where changes are closer than that.
  outline(tier, level) {
    const { times, bytes: sizes } = tier;
    const { from, to } = this.view;
    const { gutter, width } = this.lanes;
    const points = [];
    let index = Math.max(0, upperBound(times.length, (i) => times[i], from) - 1);
    if (!times.length || times[index] > to) return points;
    const end = Math.min(this.lanes.x(Math.min(to, this.view.end)), width);
    let x = Math.max(this.lanes.x(times[index]), gutter);
    points.push([x, level(sizes[index])]);
    for (index++; index < times.length && times[index] < to; ) {
      const pixel = Math.floor(this.lanes.x(times[index]));
      let low = sizes[index];
      let high = low;
      let last = low;
      do {
        last = sizes[index++];
        low = Math.min(low, last);
        high = Math.max(high, last);
      } while (index < times.length && Math.floor(this.lanes.x(times[index])) === pixel);
      x = Math.max(pixel, gutter);
      points.push([x, points[points.length - 1][1]], [x, level(high)], [x, level(low)], [x, level(last)]);
    }
    points.push([end, points[points.length - 1][1]]);
    return points;
  }

  rule(context, y, colour, dashes) {
    context.save();
    context.setLineDash(dashes);
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(this.lanes.gutter, Math.round(y) + 0.5);
    context.lineTo(this.lanes.width, Math.round(y) + 0.5);
    context.stroke();
    context.restore();
  }

  label(context, tier, name, y, onScale) {
    const far = tier.capacity !== null && !onScale ? ", off scale" : "";
    context.font = `12px ${palette.sans}`;
    context.fillStyle = palette.text;
    if (this.lanes.isNarrow) {
      context.fillText(fitted(context, name, this.lanes.width * 0.45), 12, y - 2);
      context.font = `11px ${palette.sans}`;
      context.fillStyle = palette.quiet;
      const text = wordsOf(tier) + far;
      context.fillText(text, this.lanes.width - 12 - context.measureText(text).width, y - 2);
      return;
    }
    context.fillText(fitted(context, name, this.lanes.gutter - 20), 12, y + 16);
    context.font = `11px ${palette.sans}`;
    context.fillStyle = palette.quiet;
    context.fillText(`${bytes(tier.peak)} at most`, 12, y + 31);
    if (tier.capacity !== null) context.fillText(`of ${bytes(tier.capacity)}${far}`, 12, y + 45);
  }

  // The tier at a height of the canvas, and what is resident then.
  at(x, y) {
    const height = TIER + (this.lanes.isNarrow ? 16 : 0);
    const chart = this.shown[Math.floor((y - 4) / height)];
    if (!chart || x < this.lanes.gutter) return null;
    const time = this.lanes.time(x);
    const index = upperBound(chart.tier.times.length, (i) => chart.tier.times[i], time) - 1;
    return { ...chart, time, size: index >= 0 ? chart.tier.bytes[index] : null };
  }
}

const fullness = (tier) => (tier.capacity ? tier.peak / tier.capacity : 0);
const wordsOf = (tier) => bytes(tier.peak) + (tier.capacity === null ? "" : ` of ${bytes(tier.capacity)}`);

// The whole step in a strip: how busy kernels, communication and copies are in each pixel, and where the window is.
class Overview {
  constructor(runs, view) {
    this.runs = runs;
    this.view = view;
    this.canvas = byId("overview");
    this.strips = null;
    view.watch(() => this.draw());
  }

  layOut() {
    this.width = this.canvas.clientWidth;
    this.strips = this.runs.map((run) => ["compute", "communication", "copy"].map((name) => this.density(run, name)));
  }

  density(run, name) {
    const parts = new Float64Array(Math.max(1, Math.ceil(this.width)));
    const scale = parts.length / (this.view.end - this.view.begin);
    const kinds = { compute: ["compute", "task"], communication: ["communication", "network"], copy: ["h2d", "d2h"] }[name];
    const lanes = run.lanes.filter((lane) => kinds.includes(lane.kind));
    const groups = new Set(run.lanes.map((lane) => lane.group)).size || 1;
    for (const lane of lanes) {
      for (let task = lane.from; task < lane.to; task++) {
        let from = (run.tasks.start[task] - this.view.begin) * scale;
        const to = (run.tasks.end[task] - this.view.begin) * scale;
        while (from < to) {
          const pixel = Math.min(Math.floor(from), parts.length - 1);
          const next = Math.min(to, pixel + 1);
          if (next <= from) break;
          parts[pixel] += (next - from) / groups;
          from = next;
        }
      }
    }
    return parts;
  }

  draw() {
    const height = 34;
    const context = prepare(this.canvas, this.width, height);
    const each = (height - 4) / this.strips.length;
    this.strips.forEach(([kernels, talk, copies], index) => {
      const floor = 2 + each * (index + 1) - 1;
      for (const [colour, parts, share] of [[palette["tier-edge"], kernels, 1], [palette.communication, talk, 0.5], [palette.copy, copies, 0.3]]) {
        context.beginPath();
        context.moveTo(0, floor);
        parts.forEach((part, x) => {
          const top = floor - Math.min(part, 1) * (each - 2) * share;
          context.lineTo(x, top);
          context.lineTo(x + 1, top);
        });
        context.lineTo(parts.length, floor);
        context.fillStyle = colour;
        context.globalAlpha = share === 1 ? 0.55 : 1;
        context.fill();
      }
      context.globalAlpha = 1;
    });
    const scale = this.width / (this.view.end - this.view.begin);
    const from = (this.view.from - this.view.begin) * scale;
    const to = Math.max((this.view.to - this.view.begin) * scale, from + 2);
    context.globalAlpha = 0.72;
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, this.width - to, height);
    context.globalAlpha = 1;
    if (to - from < this.width - 1) {
      context.strokeStyle = palette.accent;
      context.lineWidth = 1.5;
      context.strokeRect(from + 0.75, 0.75, Math.max(to - from - 1.5, 1), height - 1.5);
    }
  }

  // Centres the window where the pointer is.
  moveTo(x) {
    const middle = this.view.begin + (x / this.width) * (this.view.end - this.view.begin);
    const half = (this.view.to - this.view.from) / 2;
    this.view.set(middle - half, middle + half);
  }
}
