// @ts-check
// The state of a worker in one word of `get`, with a shape; and a job's workers as a row of cells.

import { set, svg } from "./dom.js";

/**
 * The kinds in the order of the cells. A kind that colour alone would not tell apart has a fill,
 * which is a pattern of index.html, or y and height, which make a thin cell.
 * @type {Record<string, {fill?: string, y?: number, height?: number}>}
 */
export const KINDS = {
  published: {},
  ready: {},
  draining: { fill: "url(#hatch)" },
  pending: {},
  queued: { fill: "url(#dots)" },
  ended: { y: 5, height: 4 },
  missing: {},
  unknown: { fill: "url(#unknown)" },
};
/** @type {Record<string, string>} */
const PHASES = {
  Pending: "pending",
  Running: "pending",
  Init: "pending",
  Unknown: "pending",
  Missing: "missing",
  Failed: "ended",
  Succeeded: "ended",
  Terminating: "draining",
};

/** @param {WorkerReport} worker */
export function kind(worker) {
  if (worker.draining) return "draining";
  const of = PHASES[worker.phase] ?? "queued"; // any other word comes from a queue
  if (of !== "pending") return of;
  return worker.published ? "published" : worker.ready ? "ready" : "pending";
}

/** @param {WorkerReport | undefined} worker undefined once it is gone */
export const stateOf = (worker) => (worker ? kind(worker) : "gone");

/**
 * @param {JobReport} report
 * @returns {[string, number][]}
 */
export function counts(report) {
  /** @type {Record<string, number>} */
  const found = {};
  for (const worker of report.workers) found[kind(worker)] = (found[kind(worker)] ?? 0) + 1;
  return Object.keys(KINDS)
    .filter((of) => found[of])
    .map((of) => [of, found[of]]);
}

const WIDTH = 132;
const MOST_CELLS = 16;

/** @param {JobReport} report */
export function cells(node, report) {
  const found = counts(report);
  const total = report.workers.length;
  const label = found.map(([of, count]) => `${count} ${of}`).join(", ") || "no workers";
  if (node.getAttribute("aria-label") === label) return;
  set(node, { "aria-label": label, role: "img", width: WIDTH, height: 14 });
  const single = total <= MOST_CELLS;
  const size = Math.min(WIDTH / Math.max(total, 1), 22);
  let x = 0;
  const shapes = [];
  for (const [of, count] of found) {
    for (let rest = single ? count : 1; rest > 0; rest--) {
      const width = single ? size : (WIDTH * count) / total;
      shapes.push(
        svg("rect", {
          class: `k k-${of}`,
          x,
          y: 1,
          width: Math.max(width - 2, 1.5),
          height: 12,
          rx: 2,
          ...KINDS[of],
        }),
      );
      x += width;
    }
  }
  node.replaceChildren(...shapes);
}
