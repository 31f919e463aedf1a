// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pointer, wheel and keys on the timeline. The wheel scrolls the page until the timeline has been clicked or Ctrl is
// held, so that it does not catch who is only passing.

class Gestures {
  constructor(view, lanes, memory, overview) {
    Object.assign(this, { view, lanes, memory, overview });
    this.pointers = new Map();
    this.moved = 0;
    for (const canvas of [lanes.canvas, memory.canvas]) {
      canvas.addEventListener("pointerdown", (event) => this.down(event));
      canvas.addEventListener("pointermove", (event) => this.move(event));
      for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
      canvas.addEventListener("pointerleave", () => this.leave());
      canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    }
    lanes.canvas.addEventListener("dblclick", (event) => this.nearer(lanes.taskAt(event.offsetX, event.offsetY)));
    lanes.canvas.addEventListener("keydown", (event) => this.key(event));
    lanes.canvas.addEventListener("focus", () => (this.hasFocus = true));
    lanes.canvas.addEventListener("blur", () => (this.hasFocus = false));
    const strip = overview.canvas;
    strip.addEventListener("pointerdown", (event) => {
      strip.setPointerCapture(event.pointerId);
      overview.moveTo(event.offsetX);
    });
    strip.addEventListener("pointermove", (event) => event.buttons && overview.moveTo(event.offsetX));
    byId("zoom-in").addEventListener("click", () => this.zoom(2));
    byId("zoom-out").addEventListener("click", () => this.zoom(0.5));
    byId("zoom-fit").addEventListener("click", () => view.fit());
    view.watch(() => this.say());
  }

  say() {
    const { from, to, begin, end } = this.view;
    const { step } = ticks(from, to, this.lanes.pixels);
    byId("range").textContent = `${tick(from, step / 10, to)} – ${tick(to, step / 10, to)}`;
    byId("zoom-out").disabled = byId("zoom-fit").disabled = from <= begin && to >= end;
  }

  down(event) {
    if (event.button !== 0) return;
    this.lanes.canvas.focus({ preventScroll: true });
    event.currentTarget.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.pointers.size === 1) this.moved = 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.hover(event);
    const now = { x: event.offsetX, y: event.offsetY };
    const perPixel = (this.view.to - this.view.from) / this.lanes.pixels;
    if (this.pointers.size === 1) {
      this.moved += Math.abs(now.x - before.x);
      if (this.moved > 3) {
        this.hide();
        this.lanes.canvas.classList.add("panning");
        this.view.pan((before.x - now.x) * perPixel);
      }
    } else {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      const apart = Math.max(Math.abs(before.x - other.x), 8);
      this.moved = 99;
      this.view.zoom(Math.max(Math.abs(now.x - other.x), 8) / apart, this.lanes.time((now.x + other.x) / 2));
    }
    this.pointers.set(event.pointerId, now);
  }

  up(event) {
    const known = this.pointers.delete(event.pointerId);
    this.lanes.canvas.classList.remove("panning");
    if (!known || this.moved > 3 || event.type !== "pointerup" || event.currentTarget !== this.lanes.canvas) return;
    this.lanes.select(this.lanes.taskAt(event.offsetX, event.offsetY), false);
    if (event.pointerType !== "mouse") this.hover(event);
  }

  leave() {
    if (this.pointers.size) return;
    this.lanes.cursor = null;
    this.hide();
    this.view.changed();
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey || (this.hasFocus && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX))) {
      event.preventDefault();
      const turned = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
      this.view.zoom(Math.exp(-Math.max(-120, Math.min(120, turned)) * (event.ctrlKey ? 0.006 : 0.0035)), this.lanes.time(event.offsetX));
      return;
    }
    const across = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.view.pan((across * (this.view.to - this.view.from)) / this.lanes.pixels);
    }
  }

  zoom(factor) {
    const { selected } = this.lanes;
    let around = (this.view.from + this.view.to) / 2;
    if (selected) {
      const { start, end } = selected.run.tasks;
      const middle = (start[selected.task] + end[selected.task]) / 2;
      if (middle >= this.view.from && middle <= this.view.to) around = middle;
    }
    this.view.zoom(factor, around);
  }

  nearer(mark) {
    if (!mark) return;
    const { start, end } = mark.run.tasks;
    const room = (end[mark.task] - start[mark.task]) * 0.6;
    this.view.set(start[mark.task] - room, end[mark.task] + room);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const part = (this.view.to - this.view.from) * 0.15;
    const act = {
      ArrowLeft: () => (event.shiftKey ? this.view.pan(-part) : this.lanes.step(-1)),
      ArrowRight: () => (event.shiftKey ? this.view.pan(part) : this.lanes.step(1)),
      ArrowUp: () => this.lanes.cross(-1),
      ArrowDown: () => this.lanes.cross(1),
      Home: () => this.lanes.ends(false),
      End: () => this.lanes.ends(true),
      Enter: () => this.nearer(this.lanes.selected),
      Escape: () => this.lanes.select(null),
      "+": () => this.zoom(1.6),
      "=": () => this.zoom(1.6),
      "-": () => this.zoom(1 / 1.6),
      "0": () => this.view.fit(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  hover(event) {
    const onLanes = event.currentTarget === this.lanes.canvas;
    this.lanes.cursor = event.offsetX >= this.lanes.gutter ? this.lanes.time(event.offsetX) : null;
    this.lanes.hovered = onLanes ? this.lanes.taskAt(event.offsetX, event.offsetY) : null;
    const tier = onLanes ? null : this.memory.at(event.offsetX, event.offsetY);
    if (this.lanes.hovered) this.show(event, this.lanes.hovered.run.strings[this.lanes.hovered.run.tasks.op[this.lanes.hovered.task]], factsOf(this.lanes.hovered));
    else if (tier) this.show(event, tier.name, tierFacts(tier));
    else this.hide();
    this.view.changed();
  }

  show(event, title, facts) {
    const tip = byId("tip");
    const [place, ...rest] = facts[0] && facts[0][0] === "in" ? [facts[0][1], ...facts.slice(1)] : [null, ...facts];
    tip.replaceChildren(
      element("b", {}, title),
      place ? element("span", { class: "quiet" }, place) : "",
      element("dl", {}, ...rest.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    );
    tip.hidden = false;
    const panel = tip.parentElement.getBoundingClientRect();
    const x = event.clientX - panel.left;
    const y = event.clientY - panel.top;
    const left = x + 16 + tip.offsetWidth > panel.width - 8 ? Math.max(8, x - 16 - tip.offsetWidth) : x + 16;
    const top = Math.min(y + 18, Math.max(panel.height, 160) - tip.offsetHeight - 8);
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(8, top))}px)`;
  }

  hide() {
    byId("tip").hidden = true;
    this.lanes.hovered = null;
  }
}

function tierFacts({ run, tier, time, size }) {
  const facts = [["at", seconds(time / run.factor)]];
  if (size !== null) facts.push(["resident", bytes(size)]);
  facts.push(["at most", bytes(tier.peak)]);
  if (tier.capacity !== null) facts.push(["capacity", bytes(tier.capacity)], ["used at most", percent(tier.peak / tier.capacity)]);
  return facts;
}
