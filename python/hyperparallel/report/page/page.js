// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts the page together: the heading, the figures, the timeline with its search, the tables, the theme.

function drawHeading(runs) {
  const names = [...new Set(runs.map((run) => run.summary.name))];
  byId("title").textContent = names.join(" and ");
  byId("subtitle").replaceChildren(
    ...runs.flatMap((run, index) => {
      const { kind, machine, devices, mesh } = run.summary;
      const axes = Object.entries(mesh).map(([name, size]) => `${name} ${size}`).join(" × ");
      const words = [machine ? `on ${machine}` : "", `${count(devices)} ${devices === 1 ? "device" : "devices"}`, axes ? `mesh ${axes}` : ""].filter(Boolean).join(" · ");
      const badge = element("span", { class: index ? "badge second" : "badge" }, runs.length > 1 ? `${"AB"[index]} ${run.label}` : kind);
      return [element("span", { style: { display: runs.length > 1 ? "block" : "inline", "margin-top": "2px" } }, badge, words)];
    }),
  );
}

function drawLegend(runs) {
  const present = CATEGORIES.filter((_, index) => runs.some((run) => run.category.includes(index)));
  byId("legend").replaceChildren(
    ...present.map(([colour, text]) => element("span", {}, element("i", { style: { background: `var(--${colour})` } }), text)),
  );
}

// Searching: what does not match is faint; arrows and Enter go from match to match.
class Search {
  constructor(runs, lanes, view) {
    Object.assign(this, { runs, lanes, view, found: [], at: -1 });
    this.box = byId("search");
    this.box.addEventListener("input", () => this.look());
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        this.box.value = "";
        this.look();
      }
    });
    byId("previous").addEventListener("click", () => this.go(-1));
    byId("next").addEventListener("click", () => this.go(1));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.box.focus();
      this.box.select();
    });
    this.look();
  }

  look() {
    this.found = [];
    this.at = -1;
    for (const run of this.runs) {
      run.found = search(run, this.box.value);
      if (!run.found) continue;
      run.before = new Int32Array(run.count + 1);
      for (const task of run.found) run.before[task + 1] = 1;
      for (let task = 0; task < run.count; task++) run.before[task + 1] += run.before[task];
      for (const task of run.found) this.found.push({ run, task });
    }
    this.say();
    this.view.changed();
  }

  go(by) {
    if (!this.found.length) return;
    this.at = (this.at + by + this.found.length + (this.at < 0 && by < 0 ? 1 : 0)) % this.found.length;
    this.lanes.select(this.found[this.at]);
    this.say();
  }

  say() {
    const none = !this.found.length;
    byId("previous").disabled = byId("next").disabled = none;
    const searched = this.box.value.trim() !== "";
    byId("matches").textContent = !searched ? "" : none ? "no match" : this.at < 0 ? `${count(this.found.length)} found` : `${count(this.at + 1)} of ${count(this.found.length)}`;
  }
}

// Light or dark: as the system has it, until the button says otherwise.
function setUpTheme(redraw) {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = byId("theme");
  const apply = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`);
    button.setAttribute("aria-pressed", String(root.dataset.theme !== undefined));
    readPalette();
    redraw();
  };
  button.addEventListener("click", () => {
    const wanted = isDark() ? "light" : "dark";
    if ((wanted === "dark") === system.matches) delete root.dataset.theme;
    else root.dataset.theme = wanted;
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

// With two runs, the tables below the timeline show one of them at a time.
function drawTables(runs) {
  const show = (run) => {
    operationsTable(run);
    collectivesTable(run);
    linksTable(run);
    tensorsTable(run);
    const exposed = causeOf(run, "communication").seconds;
    byId("communication-note").textContent = run.summary.collectives.length ? `${seconds(exposed)} exposed, received and seconds of one device.` : "";
    for (const button of document.querySelectorAll(".whose .button")) button.setAttribute("aria-pressed", String(button.dataset.run === String(run.index)));
  };
  if (runs.length > 1) {
    const buttons = runs.map((run) => element("button", { type: "button", class: "button", "data-run": run.index, onclick: () => show(run) }, `${"AB"[run.index]} ${run.label}`));
    byId("operations").querySelector(".heading").append(element("span", { class: "group whose", role: "group", "aria-label": "Run shown in the tables" }, ...buttons));
  }
  show(runs[0]);
}

// Two steps of different length, drawn as long as each other.
function offerSameLength(runs, view, layOut) {
  const button = byId("same-length");
  button.hidden = runs.length < 2;
  button.addEventListener("click", () => {
    const [a, b] = runs;
    stretch(b, b.factor === 1 ? a.summary.seconds / b.summary.seconds : 1);
    button.setAttribute("aria-pressed", String(b.factor !== 1));
    view.begin = Math.min(...runs.map((run) => run.begin * run.factor));
    view.end = Math.max(...runs.map((run) => run.end * run.factor));
    layOut();
    view.fit();
  });
}

async function main() {
  const runs = await readRuns();
  byId("report").hidden = false;
  readPalette();
  drawHeading(runs);
  drawTiles(runs);
  drawBreakdown(runs);
  drawComparison(runs);
  drawLegend(runs);
  const view = new TimeWindow(Math.min(...runs.map((run) => run.begin)), Math.max(...runs.map((run) => run.end)));
  const overview = new Overview(runs, view);
  const lanes = new Lanes(runs, view);
  const memory = new Memory(runs, view, lanes);
  lanes.canvas.setAttribute("aria-label", `Timeline of ${runs.map((run) => `${count(run.count)} tasks on ${run.lanes.length} streams`).join(" and ")}`);
  const layOut = () => {
    lanes.layOut();
    overview.layOut();
    view.changed();
  };
  layOut();
  new Gestures(view, lanes, memory, overview);
  offerSameLength(runs, view, layOut);
  const find = new Search(runs, lanes, view);
  lanes.select(null);
  drawTables(runs);
  setUpTheme(() => view.changed());
  new ResizeObserver(layOut).observe(lanes.scroller);
  window.addEventListener("resize", layOut);
  document.documentElement.dataset.ready = "true";
  window.hyperparallelReport = { runs, view, lanes, memory, find };
}

main().catch((error) => {
  byId("problem").hidden = false;
  byId("problem").textContent = `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
  throw error;
});
