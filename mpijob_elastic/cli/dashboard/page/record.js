// @ts-check
// What this page has seen of a job: the sizes, and each worker's phases over time. For the time
// before the page was opened, and while the page was hidden or cut off, a size is known only from
// the history, and a phase only from the times in the report on the worker; the rest is unknown.

import { kind } from "./workers.js";

const KEPT = 2 * 3600_000 + 60_000;
// A history of fewer changes has lost none: it has room for more (model/history.py).
const SURELY_WHOLE = 20;
// Beyond so many points of the GPU-seconds, every other one is enough for the line.
const MOST_SPENT = 1000;
/** @type {Map<string, Record>} */
const records = new Map();

/** @param {string} name */
export function recordOf(name) {
  const record = records.get(name) ?? new Record();
  records.set(name, record);
  return record;
}

/**
 * Let the next page of that name begin anew, because another job has the name now.
 * @param {string} name
 */
export function forgetRecord(name) {
  records.delete(name);
}

class Record {
  /** @type {string | undefined} of the job, undefined until it is known */
  uid;
  /** @type {SizesPart[]} the sizes that the page has seen */
  sizes = [];
  /** @type {Map<string, LanePart[]>} by worker */
  lanes = new Map();
  /** @type {Map<string, Set<string>>} creation times of the seen pods, by worker */
  pods = new Map();
  /** @type {HistoryChange[]} the changes that the history knows, the oldest first */
  changes = [];
  /** @type {SizeChange[]} the last change of each report: all that is known until the history comes */
  lastScales = [];
  /** @type {SpentPart[]} */
  spent = [];
  /** True until the page sees GPU-seconds again after a time in which it saw none. */
  apart = false;
  open = false;
  /** @type {number} when the page first showed the job */
  opened;
  /** @type {number} when the job was created */
  created;

  /**
   * @param {JobReport} report
   * @param {number} now
   */
  add(report, now) {
    this.opened ??= now;
    this.created = Date.parse(report.created);
    const { desired, ready, published } = report;
    push(this.sizes, { from: now, desired, ready, published });
    const here = new Set();
    for (const worker of report.workers) {
      here.add(worker.name);
      if (!this.lanes.has(worker.name)) this.lanes.set(worker.name, []);
      const lane = /** @type {LanePart[]} */ (this.lanes.get(worker.name));
      if (worker.created)
        this.pods.set(worker.name, (this.pods.get(worker.name) ?? new Set()).add(worker.created));
      if (!this.open) past(lane, worker, now);
      push(lane, { from: now, kind: kind(worker), node: worker.node, host: worker.host });
    }
    for (const [name, lane] of this.lanes)
      if (!here.has(name) && lane.at(-1)?.kind !== "gone") push(lane, { from: now, kind: "gone" });
    this.noteScale(report.lastScale);
    this.open = true;
    this.forget(now - KEPT);
  }

  // A little before the earliest time about which something is known.
  get start() {
    return Math.max(
      this.created,
      Math.min(
        this.opened,
        ...[...this.lanes.values()].map((lane) => lane[0].from),
        ...this.marks.map((mark) => mark.at),
      ) - 5000,
    );
  }

  get allChanges() {
    return this.changes.length ? this.changes : this.lastScales;
  }

  /** @returns {SizeMark[]} the changes of size, the oldest first */
  get marks() {
    return this.allChanges.map(({ when, from, to }) => ({
      at: Date.parse(when),
      words: `${from}→${to}`,
    }));
  }

  /** @returns {SizesPart[]} the sizes that the history knows */
  get toldSizes() {
    const asked = this.allChanges.filter((change) => change.setsSize);
    const told = asked.map(({ when, to }) => ({ from: Date.parse(when), desired: to }));
    const isWhole = this.changes.length > 0 && this.changes.length < SURELY_WHOLE;
    if (!asked.length || !isWhole) return told;
    return [{ from: this.created, desired: asked[0].from }, ...told];
  }

  /** @returns {SizesPart[]} the sizes that the page has seen, and between them those of the history */
  get allSizes() {
    const told = this.toldSizes;
    const seen = [{ from: 0 }, ...this.sizes];
    return seen.flatMap((part, place) => {
      const next = seen[place + 1];
      // While the page is cut off, the history is as old as the page.
      if ("ready" in part || !next) return [part];
      return [part, ...within(told, part.from, next.from)];
    });
  }

  /** @param {HistoryChange[]} changes in the order of their record */
  remember(changes) {
    this.changes = changes.toSorted((one, other) => Date.parse(one.when) - Date.parse(other.when));
    if (changes.length) this.lastScales = [];
  }

  /** @param {ScaleReport | null} scale */
  noteScale(scale) {
    if (!scale || this.lastScales.at(-1)?.when === scale.at) return;
    this.lastScales.push({ when: scale.at, from: scale.before, to: scale.after, setsSize: true });
  }

  /**
   * @param {GoodputReport} goodput
   * @param {number} now
   */
  spend({ allocated, kept }, now) {
    this.spent.push({ from: now, allocated, kept, apart: this.apart });
    this.apart = false;
    if (this.spent.length > MOST_SPENT) this.spent = thinned(this.spent);
  }

  close(now) {
    if (!this.open) return;
    this.open = false;
    this.apart = true;
    push(this.sizes, { from: now });
    for (const lane of this.lanes.values())
      if (lane.at(-1)?.kind !== "gone") push(lane, { from: now, kind: "unknown" });
  }

  forget(before) {
    /** @param {{from: number}[]} parts */
    const cut = (parts) => {
      while (parts.length > 1 && parts[1].from < before) parts.shift();
    };
    cut(this.sizes);
    for (const lane of this.lanes.values()) cut(lane);
    for (const [name, lane] of this.lanes)
      if (lane.length === 1 && lane[0].kind === "gone") this.lanes.delete(name);
  }
}

/**
 * Return every other point. A gap before a point that goes is before the next point.
 * @param {SpentPart[]} points
 */
function thinned(points) {
  return points
    .map((point, place) => ({ ...point, apart: point.apart || !!points[place - 1]?.apart }))
    .filter((_, place) => place % 2 === 0);
}

/**
 * Return the parts of a time.
 * @param {SizesPart[]} parts
 * @param {number} start
 * @param {number} end
 */
function within(parts, start, end) {
  return parts
    .filter((part, place) => part.from < end && !(parts[place + 1]?.from <= start))
    .map((part) => ({ ...part, from: Math.max(part.from, start) }));
}

/**
 * @template {{[name: string]: any}} T
 * @param {T[]} parts
 * @param {T} next
 */
function push(parts, next) {
  const last = parts.at(-1);
  if (
    !last ||
    Object.keys({ ...last, ...next }).some((name) => name !== "from" && last[name] !== next[name])
  )
    parts.push(next);
}

/**
 * @param {LanePart[]} lane
 * @param {WorkerReport} worker
 * @param {number} now
 */
function past(lane, worker, now) {
  const known = lane.at(-1)?.from ?? 0;
  /** @type {(time: string, of: string) => void} */
  const add = (time, of) => {
    const from = Date.parse(time);
    if (from > known && from < now)
      push(lane, {
        from,
        kind: of,
        node: worker.node,
        host: "",
        ...(of === "ready" ? { guessed: true } : {}),
      });
  };
  if (worker.created)
    add(worker.created, worker.readySince || worker.draining ? "pending" : kind(worker));
  if (worker.readySince) add(worker.readySince, "ready");
  if (worker.draining) add(worker.draining.since, "draining");
}
