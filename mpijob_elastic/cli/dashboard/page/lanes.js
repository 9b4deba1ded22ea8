// @ts-check
// One time axis: sizes as steps, changes as marks, a lane for each worker. Positions are in per
// cent, so no element has to be measured.

import { at, el, find, icon, keep, set, svg, text } from "./dom.js";
import { KINDS, kind } from "./workers.js";

/** @type {[number, string, number][]} minutes shown, in words, and minutes between two ticks */
const WINDOWS = [
  [5, "5 min", 1],
  [30, "30 min", 5],
  [120, "2 h", 20],
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
// More workers are folded by state and node.
const MOST_LANES = 40;
const short = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
/** @param {number} value */
const percent = (value) => `${value.toFixed(2)}%`;

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
  /** @type {number} the right end of the axis, in milliseconds since the epoch */
  now;
  /** @type {number} the left end of the axis, in milliseconds since the epoch */
  start;

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
    this.draw(Date.now());
  }

  draw(now) {
    if (!this.report) return;
    this.now = now;
    this.start = Math.max(now - this.minutes * 60_000, Math.min(now - 60_000, this.record.start));
    const of = new Map(this.report.workers.map((worker) => [worker.name, worker]));
    const names = [...this.record.lanes]
      .filter(([name, lane]) => of.has(name) || (lane.at(-1)?.from ?? 0) > this.start)
      .map(([name]) => name);
    names.sort((one, other) => index(one) - index(other));
    keep(
      this.body,
      ["", ...this.rows(names, of)],
      (row) => (typeof row === "string" ? row : row.key),
      (row) => this.makeRow(row),
      (node, row) => this.fillRow(node, row, of),
    );
    this.drawSizes();
    this.setTabStop([...this.body.querySelectorAll("svg.lane")]);
  }

  // Tab goes to one lane; the arrow keys go to the other lanes.
  setTabStop(lanes) {
    lanes.forEach((lane, place) => {
      set(lane, { tabindex: place === this.lane ? 0 : -1 });
    });
  }

  /** @param {number} time */
  x(time) {
    return Math.min(100, Math.max(0, ((time - this.start) / (this.now - this.start)) * 100));
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
    const found = names.filter((name) => this.sought(name, of.get(name)).includes(sought));
    text(this.found, sought ? `${found.length} of ${names.length} workers` : "");
    if (sought || this.seek.hidden) return found.slice(0, MOST_LANES);
    return folds(names, of).flatMap((fold) =>
      this.unfolded.has(fold.key) ? [fold, ...fold.names] : [fold],
    );
  }

  /**
   * @param {string} name
   * @param {WorkerReport | undefined} worker
   */
  sought(name, worker) {
    const of = worker ? kind(worker) : "gone";
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
      el(
        "td",
        { className: "now" },
        el("span", { className: "state" }),
        el("span", { className: "muted" }),
      ),
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
    if (end.firstChild.textContent !== of) end.firstChild.replaceChildren(icon(iconOf(of), of), of);
    text(end.lastChild, node);
  }

  makeLane(name) {
    const lane = svg("svg", { class: "lane", role: "img", height: MIDDLE * 2 });
    return el(
      "tr",
      {},
      el("th", { scope: "row", className: "mono" }, el("span", {}, name), el("small", {})),
      el("td", {}, lane),
      el(
        "td",
        { className: "now" },
        el("span", { className: "state" }),
        el("span", { className: "muted" }),
      ),
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
    const of = worker ? kind(worker) : "gone";
    const word = this.word(name, of);
    if (end.firstChild.textContent !== word)
      end.firstChild.replaceChildren(icon(iconOf(of), of), word);
    const left = worker?.draining?.until
      ? `${Math.max(0, Math.round((Date.parse(worker.draining.until) - this.now) / 1000))}s left`
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
      .map((part, place) => ({ ...part, to: lane[place + 1]?.from ?? this.now }))
      .filter((part) => part.to > this.start && part.kind !== "gone");
    const first = lane[0]?.from ?? 0;
    return first > this.start && first === this.record.sizes[0]?.from
      ? [{ from: 0, to: first, kind: "unknown" }, ...known]
      : known;
  }

  /**
   * @param {any} node
   * @param {LaneSpan[]} parts
   */
  drawLane(node, parts) {
    const bars = parts.map((part) => {
      const from = this.x(part.from);
      const width = Math.max(this.x(part.to) - from, 0.3);
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

  drawSizes() {
    const parts = this.record.allSizes;
    const top =
      Math.max(4, ...parts.map((part) => Math.max(part.desired ?? 0, part.ready ?? 0))) * 1.15;
    /** @param {number} value */
    const y = (value) => (100 - (value / top) * 100).toFixed(2);
    const shown = parts
      .map((part, place) => ({ ...part, to: parts[place + 1]?.from ?? this.now }))
      .filter((part) => part.to > this.start);
    /** @type {(name: "desired" | "ready" | "published", area?: boolean) => string} */
    const step = (name, area) =>
      shown
        .map((part, place) => {
          const size = part[name];
          if (size == null) return "";
          const from = (this.x(part.from) * 10).toFixed(1);
          const to = (this.x(part.to) * 10).toFixed(1);
          const joined = shown[place - 1]?.[name] != null;
          return area
            ? `M${from} 100V${y(size)}H${to}V100z`
            : `${joined ? "L" : "M"}${from} ${y(size)}H${to}`;
        })
        .join("");
    const unknown = [
      [0, shown[0]?.from ?? this.now],
      ...shown.filter((part) => part.desired == null).map((part) => [part.from, part.to]),
    ];
    const marks = this.record.marks
      .filter((mark) => mark.at > this.start)
      .sort((one, other) => one.at - other.at);
    const every = (WINDOWS.find(([minutes]) => minutes === this.minutes)?.[2] ?? 1) * 60_000;
    /** @type {number[]} */
    const ticks = [];
    for (let time = Math.ceil(this.start / every) * every; time < this.now; time += every)
      ticks.push(time);
    this.size.replaceChildren(
      ...unknown
        .filter(([from, to]) => this.x(to) > this.x(from))
        .map(([from, to]) =>
          svg("rect", {
            class: "k-unknown",
            x: percent(this.x(from)),
            y: 18,
            width: percent(this.x(to) - this.x(from)),
            height: 100,
            fill: "url(#unknown)",
          }),
        ),
      ...(this.x(shown[0]?.from ?? this.now) > 30
        ? [
            svg(
              "text",
              {
                class: "axis",
                x: percent(this.x(shown[0]?.from ?? this.now) / 2),
                y: 72,
                "text-anchor": "middle",
              },
              "not known",
            ),
          ]
        : []),
      ...ticks.flatMap((time) => [
        svg("line", {
          class: "tick",
          x1: percent(this.x(time)),
          x2: percent(this.x(time)),
          y1: 18,
          y2: 122,
        }),
        svg(
          "text",
          {
            class: "axis",
            x: percent(this.x(time)),
            y: 134,
            "text-anchor": this.x(time) < 4 ? "start" : this.x(time) > 96 ? "end" : "middle",
          },
          short.format(time),
        ),
      ]),
      svg(
        "svg",
        { y: 18, height: 100, viewBox: "0 0 1000 100", preserveAspectRatio: "none" },
        svg("path", { class: "area", d: step("ready", true) }),
        svg("path", { class: "asked", d: step("desired") }),
        svg("path", { class: "ring", d: step("published") }),
      ),
      ...marks.flatMap((mark, place) => [
        svg("line", {
          class: "mark",
          x1: percent(this.x(mark.at)),
          x2: percent(this.x(mark.at)),
          y1: 14,
          y2: 118,
        }),
        svg(
          "text",
          {
            class: "mark",
            x: percent(this.x(mark.at)),
            y: 11,
            "text-anchor": this.x(mark.at) > 92 ? "end" : this.x(mark.at) < 5 ? "start" : "middle",
          },
          marks[place + 1] && this.x(marks[place + 1].at) - this.x(mark.at) < 8 ? "" : mark.words,
        ),
      ]),
    );
    const said = marks.map((mark) => `${mark.words} at ${at(mark.at)}`).join(", ");
    const { desired, ready, published } = this.report;
    set(this.size, {
      "aria-label":
        `In the last ${this.minutes} minutes: ${said || "no change of size"}. ` +
        `Now asked for ${desired}, ready ${ready}, published ${published}.`,
    });
    keep(
      this.numbers,
      [
        ["asked", "asked for", `${this.report.desired ?? "?"}`],
        ["area", "ready", `${this.report.ready}`],
        ["ring", "published", `${this.report.published}`],
      ],
      ([name]) => name,
      ([name, words]) =>
        el(
          "div",
          {},
          el(
            "dt",
            {},
            svg(
              "svg",
              { width: 20, height: 10, "aria-hidden": "true" },
              svg("path", { class: name, d: name === "area" ? "M0 0h20v10H0z" : "M0 5h20" }),
            ),
            words,
          ),
          el("dd"),
        ),
      (node, [, , value]) => text(node.lastChild, value),
    );
  }

  /** @param {LaneSpan} span */
  words({ kind: of, node, host, from, to, guessed }) {
    const open = to >= this.now ? `since ${at(from)}` : `${at(from)} to ${at(to)}`;
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

const index = (name) => Number(name.split("-").at(-1));

/** @param {string} of */
const iconOf = (of) => (KINDS[of] ? (of === "ended" ? "failed" : of) : "missing");

/**
 * Return the workers by state and node, or by state alone if that makes too many rows; states in the
 * order of the cells.
 * @param {string[]} names
 * @param {Map<string, WorkerReport>} of
 */
function folds(names, of) {
  const found = grouped(names, of, (worker) => worker?.node ?? "");
  return found.length > MOST_LANES ? grouped(names, of, () => "") : found;
}

/**
 * @param {string[]} names
 * @param {Map<string, WorkerReport>} of
 * @param {(worker: WorkerReport | undefined) => string} place
 */
function grouped(names, of, place) {
  /** @type {Map<string, WorkersFold>} */
  const found = new Map();
  for (const name of names) {
    const worker = of.get(name);
    const state = worker ? kind(worker) : "gone";
    const node = place(worker);
    const key = `${state} on ${node}`;
    const fold = found.get(key) ?? { key, names: [], of: state, node };
    fold.names.push(name);
    found.set(key, fold);
  }
  const order = Object.keys(KINDS);
  return [...found.values()].sort(
    (one, other) =>
      order.indexOf(one.of) - order.indexOf(other.of) || (one.key < other.key ? -1 : 1),
  );
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
