// @ts-check
// Many workers in few rows: by state and node, or by state alone if that makes too many rows.

import { KINDS, stateOf } from "./workers.js";

// More workers are folded.
export const MOST_LANES = 40;

/**
 * Return the folds, with the states in the order of the cells.
 * @param {string[]} names
 * @param {Map<string, WorkerReport>} of
 */
export function folds(names, of) {
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
    const state = stateOf(worker);
    const node = place(worker);
    const key = `${state} on ${node}`;
    const fold = found.get(key) ?? { key, names: [], of: state, node };
    fold.names.push(name);
    found.set(key, fold);
  }
  const order = Object.keys(KINDS);
  const last = order.length;
  /** @param {WorkersFold} fold */
  const rank = ({ of: state }) => (state in KINDS ? order.indexOf(state) : last);
  return [...found.values()].sort(
    (one, other) => rank(one) - rank(other) || (one.key < other.key ? -1 : 1),
  );
}
