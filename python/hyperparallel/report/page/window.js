// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of the step that is shown; lanes, memory and overview draw the same one. Changes are drawn once a frame.

class TimeWindow {
  constructor(begin, end) {
    this.begin = begin;
    this.end = end > begin ? end : begin + 1e-9;
    this.from = this.begin;
    this.to = this.end;
    this.least = (this.end - this.begin) * 1e-7;
    this.watchers = [];
    this.pending = false;
  }

  watch(draw) {
    this.watchers.push(draw);
  }

  changed() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      for (const draw of this.watchers) draw();
    });
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, this.least), this.end - this.begin);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, this.begin), this.end - span);
    this.to = this.from + span;
    this.changed();
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const span = Math.min(Math.max((this.to - this.from) / factor, this.least), this.end - this.begin);
    const part = (around - this.from) / (this.to - this.from);
    this.set(around - part * span, around - part * span + span);
  }

  pan(time) {
    this.set(this.from + time, this.to + time);
  }

  fit() {
    this.set(this.begin, this.end);
  }

  // Shows a span of time: as it is if it is wide enough to see, or nearer.
  reveal(start, end, pixels) {
    const width = ((end - start) / (this.to - this.from)) * pixels;
    if (start >= this.from && end <= this.to && width >= 3) return this.changed();
    let span = this.to - this.from;
    if (width < 24) span = Math.max((end - start) * (pixels / 48), this.least);
    if (end - start > span) span = (end - start) * 1.25;
    const middle = (start + end) / 2;
    this.set(middle - span / 2, middle + span / 2);
  }
}

// Steps of 1, 2 or 5 times a power of ten that leave room for labels.
function ticks(from, to, pixels, room = 96) {
  const rough = ((to - from) * room) / Math.max(pixels, room);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => power * factor >= rough * 0.9999) || 10);
  const found = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9; index++) found.push(index * step);
  return { step, found };
}
