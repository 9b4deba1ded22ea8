// @ts-check
// One time axis: sizes as steps, changes as marks, a lane for each worker. Positions are in per
// cent, so no element has to be measured before it is drawn.

import { at, el, find, icon, keep, percent, set, svg, text } from "./dom.js";
import { folds, MOST_LANES } from "./folds.js";
import { drawSizes } from "./sizes.js";
import { KINDS, stateOf } from "./workers.js";

/** @type {[number, string][]} minutes that are shown, and in words */
const WINDOWS = [
  [5, "5 min"],
  [30, "30 min"],
  [120, "2 h"],
];
const LEGEND = ["published", "ready", "draining", "pending", "queued", "ended", "unknown"];
/** @type {Record<string, number>} */
const HEIGHTS = {
  published: 14,
  ready: 10,
  draining: 14,
  pending: 10,
  queued: 6,
  ended: 4,
  missing: 2,
  unknown: 14,
};
const MIDDLE = 11;

export class Lanes {
  minutes = 5;
  /** @type {Set<string>} the keys of the open folds */
  unfolded = new Set();
  lane = 0;
  part = -1;
  /** @type {JobReport} the report that was shown last */
  report;
  /** @type {Map<string, Finding>} by worker */
  findings;
  /** @type {TimeAxis} */
  axis;
  wide = 600;
  /** whether the job was deleted, so that nothing is known of it from then on */
  ended = false;

  /**
   * @param {any} panel
   * @param {ReturnType<typeof import("./record.js").recordOf>} record
   */
  constructor(panel, record) {
    this.record = record;
    this.body = find("tbody", panel);
    this.caption = find(".caption", panel);
    this.found = find(".found", panel);
    this.seek = find(".seek", panel);
    this.seek.addEventListener("input", () => this.draw(Date.now()));
    this.size = svg("svg", { class: "size", role: "img" });
    this.numbers = el("dl");
    new ResizeObserver(([entry]) => this.resize(entry.contentRect.width)).observe(this.size);
    this.body.append(
      el(
        "tr",
        { className: "chart" },
        el("th", { scope: "row" }, "Workers"),
        el("td", {}, this.size),
        el("td", {}, this.numbers),
      ),
    );
    this.chart = this.body.firstElementChild;
    this.chart.dataset.key = "";
    text(this.caption, "Point at a bar, or go to it with Tab and the arrow keys, to read it.");
    find(".legend", panel).append(
      ...LEGEND.map((of) =>
        el("li", {}, svg("svg", { width: 22, height: 14 }, bar(of, "0", "22", 14)), of),
      ),
    );
    for (const [minutes, words] of WINDOWS) {
      const input = el("input", {
        type: "radio",
        name: "window",
        checked: minutes === this.minutes,
      });
      input.addEventListener("change", () => {
        this.minutes = minutes;
        this.draw(Date.now());
      });
      find(".pick", panel).append(el("label", {}, input, words));
    }
    this.body.addEventListener("keydown", (event) => this.walk(event));
    this.body.addEventListener(
      "pointerover",
      ({ target }) => target.dataset?.part && this.say(target),
    );
  }

  /**
   * @param {JobReport} report
   * @param {Map<string, Finding>} findings
   */
  show(report, findings) {
    this.report = report;
    this.findings = findings;
    this.ended = false;
    this.draw(Date.now());
  }

  end() {
    this.ended = true;
    this.draw(Date.now());
  }

  /** @param {number} wide */
  resize(wide) {
    this.wide = wide;
    this.draw(Date.now());
  }

  draw(now) {
    if (!this.report) return;
    const start = Math.max(now - this.minutes * 60_000, Math.min(now - 60_000, this.record.start));
    this.axis = axis(start, now, this.minutes, this.wide);
    const of = new Map(this.report.workers.map((worker) => [worker.name, worker]));
    const names = [...this.record.lanes]
      .filter(([name, lane]) => of.has(name) || (lane.at(-1)?.from ?? 0) > start)
      .map(([name]) => name);
    names.sort((one, other) => index(one) - index(other));
    keep(
      this.body,
      ["", ...this.rows(names, of)],
      (row) => (typeof row === "string" ? row : row.key),
      (row) => this.makeRow(row),
      (node, row) => this.fillRow(node, row, of),
    );
    drawSizes(this.size, this.axis, this.record, this.ended ? null : this.report);
    this.drawNumbers();
    this.setTabStop([...this.body.querySelectorAll("svg.lane")]);
  }

  // Tab goes to one lane; the arrow keys go to the other lanes.
  setTabStop(lanes) {
    const stop = Math.min(this.lane, lanes.length - 1);
    lanes.forEach((lane, place) => {
      set(lane, { tabindex: place === stop ? 0 : -1 });
    });
  }

  /**
   * Return the rows: a lane for each worker, or, of many workers, a fold for each state and node with
   * the lanes of those that are open. What is sought is not folded.
   * @param {string[]} names
   * @param {Map<string, WorkerReport>} of
   * @returns {(string | WorkersFold)[]}
   */
  rows(names, of) {
    this.seek.hidden = names.length <= MOST_LANES;
    const sought = this.seek.hidden ? "" : this.seek.value.trim().toLowerCase();
    if (sought) return this.soughtRows(sought, names, of);
    text(this.found, "");
    if (this.seek.hidden) return names;
    return folds(names, of).flatMap((fold) =>
      this.unfolded.has(fold.key) ? [fold, ...fold.names] : [fold],
    );
  }

  /**
   * @param {string} sought
   * @param {string[]} names
   * @param {Map<string, WorkerReport>} of
   */
  soughtRows(sought, names, of) {
    const found = names.filter((name) => this.wordsOf(name, of.get(name)).includes(sought));
    text(this.found, `${found.length} of ${names.length} workers`);
    return found.slice(0, MOST_LANES);
  }

  /**
   * Return the words by which a worker is found, in small letters.
   * @param {string} name
   * @param {WorkerReport | undefined} worker
   */
  wordsOf(name, worker) {
    const of = stateOf(worker);
    return [name, worker?.node, of, this.word(name, of)].join("\n").toLowerCase();
  }

  /** @param {string | WorkersFold} row */
  makeRow(row) {
    if (typeof row !== "string") return this.makeFold(row);
    return row ? this.makeLane(row) : this.chart;
  }

  /** @type {(node: any, row: string | WorkersFold, of: Map<string, WorkerReport>) => void} */
  fillRow(node, row, of) {
    if (typeof row !== "string") this.fillFold(node, row);
    else if (row) this.fillLane(node, row, of.get(row));
  }

  /** @param {WorkersFold} fold */
  makeFold({ key }) {
    const button = el("button", { type: "button", className: "plain" });
    button.addEventListener("click", () => {
      if (!this.unfolded.delete(key)) this.unfolded.add(key);
      this.draw(Date.now());
    });
    return el(
      "tr",
      { className: "fold" },
      el("th", { scope: "row" }, button),
      el("td", { className: "muted mono" }),
      stateCell(),
    );
  }

  /**
   * @param {any} row
   * @param {WorkersFold} fold
   */
  fillFold(row, { key, names, of, node }) {
    const [head, middle, end] = row.children;
    const open = this.unfolded.has(key);
    const some = `${names.length} ${names.length === 1 ? "worker" : "workers"}`;
    text(head.firstChild, `${open ? "−" : "+"} ${some}`);
    head.firstChild.setAttribute("aria-expanded", `${open}`);
    text(middle, names.length > 1 ? `${names[0]} … ${names.at(-1)}` : names[0]);
    tellState(end, of, of);
    text(end.lastChild, node);
  }

  makeLane(name) {
    const lane = svg("svg", { class: "lane", role: "img", height: MIDDLE * 2 });
    return el(
      "tr",
      {},
      el("th", { scope: "row", className: "mono" }, el("span", {}, name), el("small", {})),
      el("td", {}, lane),
      stateCell(),
    );
  }

  /** @type {(row: any, name: string, worker: WorkerReport | undefined) => void} */
  fillLane(row, name, worker) {
    const [head, middle, end] = row.children;
    const parts = this.parts(name);
    const pods = this.record.pods.get(name)?.size ?? 0;
    const seen = pods > 1 && `${pods} pods since ${at(this.record.opened)}`;
    text(
      head.lastChild,
      [worker?.host && worker.host !== name && `listed as ${worker.host}`, seen]
        .filter(Boolean)
        .join("; "),
    );
    const of = stateOf(worker);
    tellState(end, of, this.word(name, of));
    const left = worker?.draining?.until
      ? `${Math.max(0, Math.round((Date.parse(worker.draining.until) - this.axis.now) / 1000))}s left`
      : "";
    text(
      end.lastChild,
      [worker?.node, left, worker?.lastState, worker?.quota].filter(Boolean).join(" · "),
    );
    this.drawLane(find("svg", middle), parts);
    set(find("svg", middle), {
      "aria-label": `${name}: ${parts.map((part) => this.words(part)).join("; ")}`,
    });
  }

  // `get` has no word for a worker that trains, because only exec shows that.
  word(name, of) {
    const level = this.findings?.get(name)?.level;
    return of === "published" && level === "fine" ? "training" : of;
  }

  /**
   * @param {string} name
   * @returns {LaneSpan[]}
   */
  parts(name) {
    const lane = this.record.lanes.get(name) ?? [];
    const known = lane
      .map((part, place) => ({ ...part, to: lane[place + 1]?.from ?? this.axis.now }))
      .filter((part) => part.to > this.axis.start && part.kind !== "gone");
    const first = lane[0]?.from ?? 0;
    return first > this.axis.start && first === this.record.sizes[0]?.from
      ? [{ from: 0, to: first, kind: "unknown" }, ...known]
      : known;
  }

  /**
   * @param {any} node
   * @param {LaneSpan[]} parts
   */
  drawLane(node, parts) {
    const bars = parts.map((part) => {
      const from = this.axis.x(part.from);
      const width = Math.max(this.axis.x(part.to) - from, 0.3);
      const label = part.node && width > 12 && part.kind === "published" ? part.node : "";
      return { part, from, width, label };
    });
    while (node.children.length > bars.length) node.lastChild.remove();
    while (node.children.length < bars.length)
      node.append(
        svg("g", {}, svg("rect"), svg("text", { y: MIDDLE + 4, "pointer-events": "none" })),
      );
    bars.forEach(({ part, from, width, label }, place) => {
      const [rect, words] = node.children[place].children;
      set(rect, geometry(part.kind, percent(from), percent(width), HEIGHTS[part.kind]));
      rect.dataset.part = place;
      set(words, { x: percent(from + 0.8), class: "on" });
      text(words, label);
    });
  }

  drawNumbers() {
    const { desired, ready, published } = this.report;
    keep(
      this.numbers,
      [
        ["asked", "asked for", `${desired ?? "?"}`],
        ["area", "ready", `${ready}`],
        ["ring", "published", `${published}`],
      ],
      ([name]) => name,
      ([name, words]) => number(name, words),
      (node, [, , value]) => text(node.lastChild, value),
    );
  }

  /** @param {LaneSpan} span */
  words({ kind: of, node, host, from, to, guessed }) {
    const open = to >= this.axis.now ? `since ${at(from)}` : `${at(from)} to ${at(to)}`;
    const span = of === "unknown" && !from ? `before ${at(to)}` : open;
    const unsure = guessed ? " (not known whether the worker was listed then)" : "";
    return `${of}${host ? ` as ${host}` : ""}${node ? ` on ${node}` : ""} ${span}${unsure}`;
  }

  say(target) {
    const lane = target.closest("svg.lane");
    const name = target.closest("tr").dataset.key;
    const part = this.parts(name)[Number(target.dataset.part)];
    for (const lit of this.body.querySelectorAll(".lit")) lit.classList.remove("lit");
    lane.querySelectorAll("rect")[Number(target.dataset.part)]?.classList.add("lit");
    if (part) text(this.caption, `${name}: ${this.words(part)}`);
  }

  // Up and down change the lane; left and right move along a lane.
  walk(event) {
    const lanes = [...this.body.querySelectorAll("svg.lane")];
    const here = lanes.indexOf(document.activeElement);
    const steps = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -1e6],
      End: [0, 1e6],
    }[event.key];
    if (here < 0 || !steps) return;
    event.preventDefault();
    this.lane = Math.min(Math.max(here + steps[0], 0), lanes.length - 1);
    const parts = lanes[this.lane].querySelectorAll("rect");
    this.part =
      steps[0] || this.part < 0
        ? parts.length - 1
        : Math.min(Math.max(this.part + steps[1], 0), parts.length - 1);
    this.setTabStop(lanes);
    lanes[this.lane].focus();
    if (parts[this.part]) this.say(parts[this.part]);
  }
}

/** @type {(start: number, now: number, minutes: number, wide: number) => TimeAxis} */
function axis(start, now, minutes, wide) {
  /** @param {number} time */
  const x = (time) => Math.min(100, Math.max(0, ((time - start) / (now - start)) * 100));
  return { start, now, minutes, wide, x };
}

const index = (name) => Number(name.split("-").at(-1));

const stateCell = () =>
  el(
    "td",
    { className: "now" },
    el("span", { className: "state" }),
    el("span", { className: "muted" }),
  );

/**
 * @param {any} cell
 * @param {string} of
 * @param {string} word
 */
function tellState(cell, of, word) {
  const state = cell.firstChild;
  if (state.textContent !== word) state.replaceChildren(icon(iconOf(of), of), word);
}

/** @param {string} of */
function iconOf(of) {
  if (of === "ended") return "failed";
  return KINDS[of] ? of : "missing";
}

/**
 * @param {string} name the class of the sample
 * @param {string} words
 */
function number(name, words) {
  const shape = svg("path", { class: name, d: name === "area" ? "M0 0h20v10H0z" : "M0 5h20" });
  const sample = svg("svg", { width: 20, height: 10, "aria-hidden": "true" }, shape);
  return el("div", {}, el("dt", {}, sample, words), el("dd"));
}

function geometry(of, x, width, height) {
  return {
    class: `k k-${of}`,
    x,
    width,
    y: MIDDLE - height / 2,
    height,
    rx: height > 4 ? 2 : 0,
    fill: KINDS[of]?.fill ?? "",
  };
}

function bar(of, x, width, space) {
  return svg("rect", { ...geometry(of, x, width, HEIGHTS[of]), y: (space - HEIGHTS[of]) / 2 });
}
