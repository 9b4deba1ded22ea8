// @ts-check
// The page of all jobs: jobs with a problem come first. Only cells that have changed are written.

import { age, el, find, focusKept, gpus, icon, keep, sentence, svg, text } from "./dom.js";
import { cells } from "./workers.js";

const GROUPS = ["Needs a look", "Changing", "Waiting", "Running", "Ended"];
export const icons = (state) =>
  ({
    Running: "running",
    Succeeded: "succeeded",
    Failed: "failed",
    Suspended: "suspended",
    Queued: "queued",
  })[state] ?? "pending";

/**
 * The index of a job's group.
 * @param {{report: JobReport, says: Finding[]}} job
 */
function group({ report, says }) {
  if (report.state === "Succeeded") return 4;
  if (report.state === "Failed" || says.some((finding) => finding.level === "wrong")) return 0;
  if (!report.published && (report.queue?.workload || report.state !== "Running")) return 2;
  return report.draining || report.published !== report.desired || says.length ? 1 : 3;
}

export class JobsView {
  path = "/api/jobs";
  /** @type {Map<string, JobRow>} by namespace/name */
  rows = new Map();
  /** @type {Set<string>} the jobs that were received since the stream was opened */
  seen = new Set();
  /** whether all jobs have been received */
  listed = false;
  /** whether the server refuses to show them */
  refused = false;
  /** @type {any} elements of index.html */
  main;
  /** @type {any} */
  table;
  /** @type {any[]} of each group */
  bodies;
  /** @type {any} the filter */
  text;
  /** @type {any} */
  namespace;
  /** @type {any} */
  state;

  enter(main) {
    this.main = main;
    this.table = find("table", main);
    this.bodies = GROUPS.map((name) => {
      const head = el(
        "tr",
        { className: "group" },
        el("th", { colSpan: 7, scope: "rowgroup" }, name, " ", el("span", { className: "muted" })),
      );
      const body = el("tbody", {});
      this.table.append(el("tbody", { hidden: true }, head), body);
      return body;
    });
    for (const name of /** @type {const} */ (["text", "namespace", "state"])) {
      this[name] = find(`#${name}`, main);
      this[name].addEventListener("input", () => this.draw());
    }
    find("form", main).addEventListener("submit", (event) => event.preventDefault());
    this.draw();
  }

  // The banner says why.
  /** @param {string} words */
  refuse(words) {
    this.refused = Boolean(words);
    if (!this.listed) text(find(".sentence", this.main), this.sentence([]));
  }

  opened() {
    this.seen = new Set();
  }

  // Rows move only when a job comes or goes, its group or state changes, or a filter text is set.
  // Otherwise only the job's own row is written.
  take(parts) {
    let moved = !this.listed;
    for (const [name, value] of parts) {
      if (name === "listed") {
        for (const known of this.rows.keys())
          if (!this.seen.has(known)) moved = this.rows.delete(known);
        this.listed = true;
      } else if (name.includes("/")) {
        this.seen.add(name);
        const old = this.rows.get(name);
        if (value) {
          const job = { ...value, name, group: group(value), node: old?.node, changed: true };
          this.rows.set(name, job);
          moved ||=
            old?.group !== job.group ||
            old?.report.state !== job.report.state ||
            this.text.value !== "";
          if (job.node) fill(job.node, job);
        } else moved = this.rows.delete(name) || moved;
      }
    }
    if (moved) this.draw();
  }

  draw() {
    const jobs = [...this.rows.values()];
    const refocus = focusKept();
    options(
      this.namespace,
      "All namespaces",
      count(jobs, (job) => job.report.namespace),
    );
    options(
      this.state,
      "All states",
      count(jobs, (job) => job.report.state),
    );
    const shown = jobs
      .filter((job) => this.matches(job))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
    GROUPS.forEach((_, index) => {
      const mine = shown.filter((job) => job.group === index);
      const head = this.bodies[index].previousElementSibling;
      head.hidden = !mine.length;
      text(find("span", head), `${mine.length}`);
      keep(
        this.bodies[index],
        mine,
        (job) => job.name,
        (job) => (job.node ??= row(job)),
        fill,
      );
    });
    text(find(".sentence", this.main), this.sentence(jobs));
    text(
      find("#count", this.main),
      shown.length === jobs.length ? "" : `${shown.length} of ${jobs.length} jobs`,
    );
    this.tellEmpty(jobs, shown);
    refocus(); // on a job that left a group before it came to a later one
  }

  /** @param {JobRow} job */
  matches({ report, says, name }) {
    if (
      ![report.namespace, ""].includes(this.namespace.value) ||
      ![report.state, ""].includes(this.state.value)
    )
      return false;
    if (!this.text.value.trim()) return true;
    const words = [
      name,
      report.queue?.name,
      report.queue?.says,
      ...report.workers.map((worker) => worker.node),
      ...says.map((finding) => finding.says),
      ...report.notices,
    ].join("\n");
    return words.toLowerCase().includes(this.text.value.trim().toLowerCase());
  }

  sentence(jobs) {
    if (!this.listed) return this.refused ? "The jobs are not shown." : "Reading the jobs…";
    const of = GROUPS.map((_, index) => jobs.filter((job) => job.group === index).length);
    const said = [
      [of[0], of[0] === 1 ? "needs a look" : "need a look"],
      [of[1], "changing"],
      [of[2], "waiting"],
      [of[3], "running as asked"],
      [of[4], "ended"],
    ];
    const parts = said.filter(([number]) => number).map(([number, words]) => `${number} ${words}`);
    return jobs.length
      ? `${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}: ${parts.join(", ")}.`
      : "No jobs yet.";
  }

  tellEmpty(jobs, shown) {
    const empty = find(".empty", this.main);
    empty.hidden = !this.listed || shown.length > 0;
    find("thead", this.table).hidden = !shown.length;
    text(
      empty,
      jobs.length
        ? "No job matches the filter. Press Escape to clear it."
        : "There are no MPIJobs here. Create one with kubectl, or choose other jobs with " +
            "mpijob-elastic dashboard -n NAMESPACE or -A.",
    );
  }

  key(event) {
    const links = [...this.table.querySelectorAll("tbody a")];
    const index = links.indexOf(document.activeElement);
    const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
    if (event.key === "/" && !typing) this.text.focus();
    else if (event.key === "Escape") {
      this.text.value = this.namespace.value = this.state.value = "";
      this.draw();
    } else if (event.key === "ArrowDown" && event.target.tagName !== "SELECT")
      links[Math.min(index + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp" && !typing) (links[index - 1] ?? this.text).focus();
    else return;
    event.preventDefault();
  }

  tick(now) {
    for (const job of this.rows.values()) if (job.node) ago(job, now);
  }
}

function row({ report }) {
  const link = el(
    "a",
    { href: `#/${report.namespace}/${report.name}` },
    el("span", { className: "muted" }, `${report.namespace}/`),
    el("b", {}, report.name),
  );
  return el(
    "tr",
    {},
    el("td", {}, el("span", { className: "state" })),
    el("th", { scope: "row" }, link, el("span", {})),
    el("td", { className: "workers" }, svg("svg"), " ", el("span", {})),
    el("td", {}),
    el("td", {}),
    el("td", {}, el("b", {}), el("span", { className: "muted" })),
    el("td", {}, el("span", { className: "why" })),
  );
}

/**
 * @param {any} node
 * @param {JobRow} job
 */
function fill(node, job) {
  if (!job.changed) return;
  job.changed = false;
  job.node = node;
  const { report, says } = job;
  const [state, name, size, devices, queue, , why] = node.children;
  node.className = job.group ? "" : "look";
  if (state.textContent !== report.state)
    find(".state", state).replaceChildren(icon(icons(report.state), report.state), report.state);
  keep(
    name.lastChild,
    report.elastic ? [] : ["not elastic"],
    (word) => word,
    (word) => el("span", { className: "tag" }, word),
  );
  cells(find("svg", size), report);
  text(find("span", size), `${report.published} of ${report.desired ?? "?"}`);
  text(devices, gpus(report) || "–");
  text(
    queue,
    report.queue
      ? report.queue.name + (report.queue.place ? `, place ${report.queue.place}` : "")
      : "–",
  );
  const first = says[0]?.says ?? "";
  const waits = report.queue?.says;
  const more = [
    waits && !first.includes(waits) && `${report.queue?.name}: ${waits}.`,
    says.length > 1 && `And ${says.length - 1} more.`,
  ].filter(Boolean);
  const begins = more.length ? sentence(first) : first;
  const words = [begins, ...more].join(" ").trim();
  text(why.firstChild, words);
  why.title = words;
  ago(job, Date.now());
}

function ago({ report, node }, now) {
  const scale = report.lastScale;
  const [size, since] = node.children[5].children;
  text(size, scale ? `${scale.before}→${scale.after}` : "");
  text(
    since,
    scale
      ? ` ${age(now - Date.parse(scale.at))} ago`
      : `created ${age(now - Date.parse(report.created))} ago`,
  );
}

/**
 * @param {JobRow[]} jobs
 * @param {(job: JobRow) => string} of
 */
function count(jobs, of) {
  const found = new Map();
  for (const job of jobs) found.set(of(job), (found.get(of(job)) ?? 0) + 1);
  return [...found].sort();
}

function options(select, all, found) {
  const chosen = select.value;
  const kept = chosen && !found.some(([name]) => name === chosen) ? [[chosen, 0], ...found] : found;
  keep(
    select,
    [["", 0], ...kept],
    ([name]) => name,
    ([name]) => el("option", { value: name }),
    (option, [name, number]) => text(option, name ? `${name} (${number})` : all),
  );
  if (select.value !== chosen) select.value = chosen;
}
