// @ts-check
// What this page has seen of a job: the sizes, and each worker's phases over time. For the time
// before the page was opened, and while the page was hidden or cut off, a phase is known only from
// the times in the report on the worker; the rest is unknown.

import { kind } from "./workers.js";

const KEPT = 2 * 3600_000 + 60_000;
const SAME = 3000; // milliseconds between two words of one change
// The history keeps so many changes.
const MOST_CHANGES = 50;
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

class Record {
  /** @type {SizesPart[]} */
  sizes = [];
  /** @type {Map<string, LanePart[]>} by worker */
  lanes = new Map();
  /** @type {Map<string, Set<string>>} creation times of the seen pods, by worker */
  pods = new Map();
  /** @type {{at: number, words: string}[]} */
  marks = [];
  /** @type {SizesPart[]} the sizes that the history knows */
  known = [];
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
    this.mark(report.lastScale);
    // Until the history comes, the last change alone tells of the past.
    if (report.lastScale && !this.known.length)
      this.known = [{ from: Date.parse(report.lastScale.at), desired: report.lastScale.after }];
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

  // The sizes from the job's start or the oldest change on: those that the page has seen, and
  // before them those of the history.
  get allSizes() {
    const seen = this.sizes[0]?.from ?? Date.now();
    return [...this.known.filter((part) => part.from < seen), ...this.sizes];
  }

  /** @param {HistoryChange[]} changes the oldest first */
  remember(changes) {
    const [first] = changes;
    if (!first) return;
    const whole = changes.length < MOST_CHANGES;
    const earlier = whole ? [{ from: this.created ?? 0, desired: first.from }] : [];
    const later = changes.map((change) => ({ from: Date.parse(change.when), desired: change.to }));
    this.known = [...earlier, ...later];
    for (const { when, from, to } of changes) this.mark({ at: when, before: from, after: to });
    this.forget(Date.now() - KEPT);
  }

  /**
   * @param {GoodputReport} goodput
   * @param {number} now
   */
  spend({ allocated, kept }, now) {
    this.spent.push({ from: now, allocated, kept, apart: this.apart });
    this.apart = false;
    if (this.spent.length > MOST_SPENT)
      this.spent = this.spent.filter((_, place) => place % 2 === 0);
  }

  /** @param {ScaleReport | null} scale */
  mark(scale) {
    if (!scale) return;
    const mark = { at: Date.parse(scale.at), words: `${scale.before}→${scale.after}` };
    const same = this.marks.some(
      (known) => known.words === mark.words && Math.abs(known.at - mark.at) < SAME,
    );
    if (!same) this.marks.push(mark);
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
    cut(this.known);
    for (const lane of this.lanes.values()) cut(lane);
    for (const [name, lane] of this.lanes)
      if (lane.length === 1 && lane[0].kind === "gone") this.lanes.delete(name);
    this.marks = this.marks.filter((mark) => mark.at >= before);
  }
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
