// @ts-check
// The sizes of a job as steps over time, with a mark for each change. Positions are in per cent.

import { at, percent, set, svg } from "./dom.js";

/** @type {Record<number, number>} milliseconds between two ticks, by the minutes that are shown */
const TICKS = { 5: 60_000, 30: 300_000, 120: 1_200_000 };
// The lines are drawn between these heights, below the marks and above the times.
const TOP = 18;
const HEIGHT = 100;
// Words beside the edge are not centred.
const EDGE = 5;
// A mark whose next is nearer than its words are wide, at so many pixels for a letter, has none.
const LETTER = 8;
// Per cent of the width in which "not known" has room.
const ROOM = 30;
const short = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/**
 * @param {any} node
 * @param {TimeAxis} axis
 * @param {{allSizes: SizesPart[], marks: SizeMark[]}} record
 * @param {JobReport | null} report null if the job was deleted
 */
export function drawSizes(node, axis, record, report) {
  const spans = shownSpans(record.allSizes, axis);
  const marks = record.marks.filter((mark) => mark.at > axis.start);
  node.replaceChildren(
    ...spans.filter((span) => span.desired == null).flatMap((span) => unknown(span, axis)),
    ...ticks(axis),
    lines(spans, axis),
    ...marks.flatMap((mark, place) => marked(mark, marks[place + 1], axis)),
  );
  const said = marks.map((mark) => `${mark.words} at ${at(mark.at)}`).join(", ");
  const past = `In the last ${axis.minutes} minutes: ${said || "no change of size"}.`;
  set(node, { "aria-label": [past, ...present(report)].join(" ") });
}

/** @param {JobReport | null} report */
function present(report) {
  if (!report) return [];
  const { desired, ready, published } = report;
  return [`Now asked for ${desired}, ready ${ready}, published ${published}.`];
}

/**
 * @param {SizesPart[]} parts
 * @param {TimeAxis} axis
 * @returns {SizesSpan[]}
 */
function shownSpans(parts, { start, now }) {
  return parts
    .map((part, place) => ({ ...part, to: parts[place + 1]?.from ?? now }))
    .filter((span) => span.to > Math.max(span.from, start));
}

/**
 * @param {SizesSpan} span
 * @param {TimeAxis} axis
 */
function unknown(span, { x }) {
  const from = x(span.from);
  const width = x(span.to) - from;
  const place = { x: percent(from), y: TOP, width: percent(width), height: HEIGHT };
  const hatched = svg("rect", { class: "k-unknown", ...place, fill: "url(#unknown)" });
  if (width < ROOM) return [hatched];
  const middle = { x: percent(from + width / 2), y: 72, "text-anchor": "middle" };
  return [hatched, svg("text", { class: "axis", ...middle }, "not known")];
}

/** @param {TimeAxis} axis */
function ticks({ start, now, minutes, x }) {
  const every = TICKS[minutes];
  const found = [];
  for (let time = Math.ceil(start / every) * every; time < now; time += every) {
    const place = x(time);
    const line = { x1: percent(place), x2: percent(place), y1: TOP, y2: TOP + HEIGHT + 4 };
    const words = { x: percent(place), y: TOP + HEIGHT + 16, "text-anchor": anchor(place) };
    found.push(svg("line", { class: "tick", ...line }));
    found.push(svg("text", { class: "axis", ...words }, short.format(time)));
  }
  return found;
}

/**
 * @param {SizesSpan[]} spans
 * @param {TimeAxis} axis
 */
function lines(spans, { x }) {
  const sizes = spans.flatMap((span) => [span.desired ?? 0, span.ready ?? 0]);
  const top = Math.max(4, ...sizes) * 1.15;
  /** @param {number} size */
  const y = (size) => (100 - (size / top) * 100).toFixed(2);
  /** @param {number} time */
  const across = (time) => (x(time) * 10).toFixed(1);
  /** @type {(name: "desired" | "ready" | "published", step: (from: string, size: string, to: string, joined: boolean) => string) => string} */
  const path = (name, step) =>
    spans
      .map((span, place) => {
        const size = span[name];
        if (size == null) return "";
        const joined = spans[place - 1]?.[name] != null;
        return step(across(span.from), y(size), across(span.to), joined);
      })
      .join("");
  /** @type {(from: string, size: string, to: string) => string} */
  const area = (from, size, to) => `M${from} 100V${size}H${to}V100z`;
  /** @type {(from: string, size: string, to: string, joined: boolean) => string} */
  const line = (from, size, to, joined) => `${joined ? "L" : "M"}${from} ${size}H${to}`;
  return svg(
    "svg",
    { y: TOP, height: HEIGHT, viewBox: "0 0 1000 100", preserveAspectRatio: "none" },
    svg("path", { class: "area", d: path("ready", area) }),
    svg("path", { class: "asked", d: path("desired", line) }),
    svg("path", { class: "ring", d: path("published", line) }),
  );
}

/**
 * @param {SizeMark} mark
 * @param {SizeMark | undefined} next
 * @param {TimeAxis} axis
 */
function marked(mark, next, { wide, x }) {
  const place = x(mark.at);
  const line = { x1: percent(place), x2: percent(place), y1: TOP - 4, y2: TOP + HEIGHT };
  const words = { x: percent(place), y: TOP - 7, "text-anchor": anchor(place) };
  const room = 100 * ((mark.words.length * LETTER) / wide);
  const isNear = next && x(next.at) - place < room;
  return [
    svg("line", { class: "mark", ...line }),
    svg("text", { class: "mark", ...words }, isNear ? "" : mark.words),
  ];
}

/** @param {number} place in per cent */
function anchor(place) {
  if (place < EDGE) return "start";
  return place > 100 - EDGE ? "end" : "middle";
}
