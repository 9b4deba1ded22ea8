// @ts-check
// How far the training is, where its GPU-seconds went, and its pace at each size. Positions are in
// per cent, so no element has to be measured.

import { age, at, el, find, keep, set, svg, text } from "./dom.js";

/**
 * The buckets in the order of the bar, each with a look of its own: a class for the colour, and a
 * pattern of index.html or a height where a colour alone would not tell it from another.
 * @type {[Bucket, string, {fill?: string, height?: number}][]}
 */
const BUCKETS = [
  ["kept", "steps that count", {}],
  ["repeated", "steps lost and done again", { fill: "url(#hatch)" }],
  ["stalled", "in a ring that does no step", { height: 6 }],
  ["joining", "listed, before the first step", { fill: "url(#dots)" }],
  ["starting", "before the list has it", { height: 10 }],
  ["leaving", "off the list", { fill: "url(#leaving)" }],
  ["useless", "never had a rank", { height: 3 }],
  ["unknown", "without a line of progress", { fill: "url(#unknown)" }],
];
const HIGH = 18;

export class Training {
  /** @type {TrainingReport | undefined} */
  shown;

  /**
   * @param {any} panel
   * @param {ReturnType<typeof import("./record.js").recordOf>} record
   */
  constructor(panel, record) {
    this.panel = panel;
    this.record = record;
    this.steps = find(".steps", panel);
    this.bar = find(".buckets svg", panel);
    this.chart = find(".spent svg", panel);
  }

  /** @param {TrainingReport} training */
  show(training) {
    this.shown = training;
    const { progress, goodput } = training;
    // Without a line nothing is known but bounds, and a picture of bounds would tell no more.
    const tells = goodput !== null && goodput.allocated > goodput.unknown && told(training);
    this.panel.hidden = !progress && !goodput;
    this.steps.hidden = !progress;
    if (progress) this.showSteps(progress);
    text(find(".sum", this.panel), goodput ? sum(goodput) : "");
    for (const part of this.panel.querySelectorAll(".told")) part.hidden = !tells;
    if (!tells) return;
    this.showBuckets(goodput);
    this.showRates(goodput.rates);
    this.draw();
  }

  /** @param {ProgressReport} progress */
  showSteps(progress) {
    const { step, total, percent, stepsPerSecond, samplesPerSecond, secondsLeft } = progress;
    const bar = find("progress", this.steps);
    bar.hidden = percent === null;
    bar.value = percent ?? 0;
    bar.setAttribute("aria-label", "Steps done");
    const words = [
      total === null ? `step ${step}` : `step ${step} of ${total} (${percent}%)`,
      stepsPerSecond !== null && `${figure(stepsPerSecond)} steps/s`,
      samplesPerSecond !== null && `${figure(samplesPerSecond)} samples/s`,
      secondsLeft !== null && `${age(secondsLeft * 1000)} left`,
    ];
    text(find(".words", this.steps), words.filter(Boolean).join(", "));
    find(".ago", this.steps).dataset.since = progress.at;
  }

  /** @param {GoodputReport} goodput */
  showBuckets(goodput) {
    const parts = BUCKETS.filter(([name]) => goodput[name] > 0);
    const label = parts.map(([name]) => `${Math.round(goodput[name])} ${name}`).join(", ");
    set(this.bar, { "aria-label": label, role: "img" });
    let x = 0;
    keep(
      this.bar,
      parts,
      ([name]) => name,
      ([name, , look]) => segment(name, look),
      (node, [name]) => {
        const width = (100 * goodput[name]) / goodput.allocated;
        set(node, { x: `${x.toFixed(2)}%`, width: `${Math.max(width - 0.2, 0.1).toFixed(2)}%` });
        x += width;
      },
    );
    keep(
      find(".buckets dl", this.panel),
      parts,
      ([name]) => name,
      ([name, words, look]) => {
        const sample = segment(name, look);
        set(sample, { x: 0, width: 22 });
        const mark = svg("svg", { width: 22, height: HIGH, "aria-hidden": "true" }, sample);
        const term = el("dt", {}, mark, name);
        return el("div", { title: words }, term, el("dd"));
      },
      (node, [name]) => text(node.lastChild, whole(goodput[name])),
    );
  }

  /** @param {Record<string, number>} rates */
  showRates(rates) {
    const sizes = Object.entries(rates).sort(([one], [other]) => Number(one) - Number(other));
    const most = Math.max(...sizes.map(([, rate]) => rate));
    find(".rates", this.panel).hidden = !sizes.length;
    keep(
      find(".rates tbody", this.panel),
      sizes,
      ([size]) => size,
      ([size]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, `${size} ${size === "1" ? "worker" : "workers"}`),
          el("td", {}, svg("svg", { height: 12, "aria-hidden": "true" }, svg("rect"))),
          el("td", {}),
        ),
      (row, [, rate]) => {
        const width = `${((100 * rate) / most).toFixed(1)}%`;
        set(find("rect", row), { class: "k k-kept", height: 12, rx: 2, width });
        text(row.lastChild, `${figure(rate)} samples/s`);
      },
    );
  }

  // Both lines begin at 0 where the page began to see them, so that their gap is what was lost since.
  draw() {
    const points = this.record.spent;
    const first = points[0];
    const last = points.at(-1);
    find(".spent", this.panel).hidden = points.length < 2;
    if (!first || !last || points.length < 2) return;
    const wide = Math.max(last.from - first.from, 1);
    const top = Math.max(1, ...points.map((point) => point.allocated - first.allocated));
    /** @type {(name: "allocated" | "kept") => string} */
    const path = (name) =>
      points
        .map((point, place) => {
          const x = ((1000 * (point.from - first.from)) / wide).toFixed(1);
          const y = 100 - (100 * Math.max(0, point[name] - first[name])) / top;
          return `${place && !point.apart ? "L" : "M"}${x} ${Math.max(0, y).toFixed(2)}`;
        })
        .join("");
    set(find(".asked", this.chart), { d: path("allocated") });
    set(find(".ring", this.chart), { d: path("kept") });
    const allocated = last.allocated - first.allocated;
    const kept = Math.max(0, last.kept - first.kept);
    text(find(".since", this.panel), `since ${at(first.from)}`);
    text(find(".grown-allocated", this.panel), whole(allocated));
    text(find(".grown-kept", this.panel), whole(kept));
    set(this.chart, {
      "aria-label": `Since ${at(first.from)}: ${whole(allocated)} allocated, ${whole(kept)} kept`,
      role: "img",
    });
  }
}

/** @param {TrainingReport} training */
function told({ progress, goodput }) {
  return progress !== null || (goodput !== null && goodput.kept + goodput.repeated > 0);
}

/** @param {GoodputReport} goodput */
function sum(goodput) {
  const { unit, allocated, kept, unknown } = goodput;
  const share = allocated ? ` (${Math.round((100 * kept) / allocated)}%)` : "";
  const words = unknown ? `kept at most ${whole(kept + unknown)}` : `${whole(kept)} kept${share}`;
  return `${unit[0].toUpperCase()}${unit.slice(1)}: ${whole(allocated)} allocated, ${words}`;
}

function segment(name, { fill = "", height = HIGH }) {
  const y = (HIGH - height) / 2;
  return svg("rect", { class: `k k-${name}`, y, height, rx: height > 4 ? 2 : 0, fill });
}

/** @param {number} seconds */
const whole = (seconds) => Math.round(seconds).toString();

/**
 * Return a number as `get` writes it: three digits, or all before the point.
 * @param {number} number
 */
const figure = (number) =>
  number >= 100 ? whole(number) : Number(number.toPrecision(3)).toString();
