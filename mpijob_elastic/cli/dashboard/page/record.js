// What this page has seen of a job: sizes and each worker's phases over time. Before it was opened, and while it was
// hidden or cut off, a phase is known only from the times that the pod itself tells; the rest is unknown.

import { kind } from "./workers.js";

const KEPT = 2 * 3600_000 + 60_000;
const records = new Map();

export function recordOf(name) {
  if (!records.has(name)) records.set(name, new Record());
  return records.get(name);
}

class Record {
  sizes = []; // {from, desired, ready, published}, {from} where unknown
  lanes = new Map(); // worker → [{from, kind, node, host, guessed}]
  pods = new Map(); // worker → when each pod of it that was seen was created
  marks = []; // {at, words}
  open = false;

  add(report, now) {
    this.opened ??= now;
    this.created = Date.parse(report.created);
    const { desired, ready, published } = report;
    push(this.sizes, { from: now, desired, ready, published });
    const here = new Set();
    for (const worker of report.workers) {
      here.add(worker.name);
      if (!this.lanes.has(worker.name)) this.lanes.set(worker.name, []);
      const lane = this.lanes.get(worker.name);
      if (worker.created)
        this.pods.set(worker.name, (this.pods.get(worker.name) ?? new Set()).add(worker.created));
      if (!this.open) past(lane, worker, now);
      push(lane, { from: now, kind: kind(worker), node: worker.node, host: worker.host });
    }
    for (const [name, lane] of this.lanes)
      if (!here.has(name) && lane.at(-1)?.kind !== "gone") push(lane, { from: now, kind: "gone" });
    this.mark(report.lastScale);
    this.open = true;
    this.forget(now - KEPT);
  }

  // The earliest time of which something is known.
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

  mark(scale) {
    if (!scale) return;
    const mark = { at: Date.parse(scale.at), words: `${scale.before}→${scale.after}` };
    if (!this.marks.some((known) => known.at === mark.at && known.words === mark.words))
      this.marks.push(mark);
  }

  close(now) {
    if (!this.open) return;
    this.open = false;
    push(this.sizes, { from: now });
    for (const lane of this.lanes.values())
      if (lane.at(-1)?.kind !== "gone") push(lane, { from: now, kind: "unknown" });
  }

  forget(before) {
    const cut = (parts) => {
      while (parts.length > 1 && parts[1].from < before) parts.shift();
    };
    cut(this.sizes);
    this.lanes.forEach(cut);
    for (const [name, lane] of this.lanes)
      if (lane.length === 1 && lane[0].kind === "gone") this.lanes.delete(name);
    this.marks = this.marks.filter((mark) => mark.at >= before);
  }
}

function push(parts, next) {
  const last = parts.at(-1);
  if (
    !last ||
    Object.keys({ ...last, ...next }).some((name) => name !== "from" && last[name] !== next[name])
  )
    parts.push(next);
}

function past(lane, worker, now) {
  const known = lane.at(-1)?.from ?? 0;
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
