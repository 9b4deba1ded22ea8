// @ts-check
// The page of one job: a sentence on top, then size and workers over time, the next steps, history.

import { Changes } from "./changes.js";
import { age, command, el, find, gpus, icon, keep, sentence, text, when } from "./dom.js";
import { icons } from "./jobs.js";
import { Lanes } from "./lanes.js";
import { forgetRecord, recordOf } from "./record.js";
import { authorized } from "./stream.js";
import { Training } from "./training.js";

const LEVELS = {
  wrong: ["wrong", "Wrong"],
  waiting: ["queued", "Waits"],
  unknown: ["pending", "Not known"],
  notice: ["pending", "Notice"],
};

export class JobView {
  /** @type {any} an element of index.html */
  main;
  /** @type {JobReport | null | undefined} null once the job is deleted */
  report;
  /** @type {Explanation | undefined} */
  explanation;
  /** @type {string | undefined} the explanation in a sentence */
  headline;
  /** @type {Lanes} */
  lanes;
  /** @type {Training} */
  training;
  /** @type {LogReport | undefined} of the launcher */
  log;
  /** @type {string[]} the log of the launcher before, as far as this page has seen it */
  former = [];
  /** the read of the YAML that is under way, if any */
  reading = new AbortController();
  /** @type {any} the field with the words that are sought in the log */
  seek;

  /**
   * @param {string} namespace
   * @param {string} name
   * @param {() => void} anew shows the job of this name anew
   */
  constructor(namespace, name, anew) {
    this.namespace = namespace;
    this.anew = anew;
    this.name = `${namespace}/${name}`;
    this.path = `/api/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    this.record = recordOf(this.name);
    this.changes = new Changes(this.path, this.name);
    this.commands = [
      `mpijob-elastic explain ${name} -n ${namespace}`,
      `mpijob-elastic watch ${name} -n ${namespace}`,
      `mpijob-elastic scale ${name} -n ${namespace} --replicas=`,
      `kubectl -n ${namespace} edit mpijob ${name}`,
      `mpijob-elastic logs ${name} -n ${namespace} -f`,
    ];
  }

  enter(main) {
    this.main = main;
    this.changes.enter(main);
    this.lanes = new Lanes(find("#lanes", main), this.record);
    this.training = new Training(find(".training", main), this.record);
    text(find(".sentence", main), "Reading the job…");
    this.seek = find('[aria-label="Search the log"]', main);
    this.seek.addEventListener("input", () => this.showLog());
    find("#yaml", main).addEventListener("toggle", () => this.showManifest());
  }

  // The history comes anew, and tells of the time in which the page was cut off.
  opened() {
    this.record.changes = [];
  }

  leave() {
    this.refuse("");
    this.tellDeleted(false);
    this.stale();
    this.reading.abort();
    this.changes.sending.abort();
  }

  stale() {
    this.record.close(Date.now());
    this.changes.live(false);
  }

  // A job of which nothing was ever shown has no page, only a sentence that says why.
  /** @param {string} words */
  refuse(words) {
    if (this.report !== undefined || !words) {
      delete this.main.dataset.absent;
      return;
    }
    this.main.dataset.absent = "";
    text(find(".sentence", this.main), sentence(words.replace(/^no /, "There is no ")));
  }

  live() {
    this.changes.live(true);
    if (!this.report) return;
    this.show();
    this.showManifest();
  }

  /** @param {Map<string, any>} parts */
  take(parts) {
    if (parts.has("object") && this.isAnother(parts.get("object"))) {
      forgetRecord(this.name);
      this.anew();
      return;
    }
    if (parts.has("may")) this.changes.may = parts.get("may");
    for (const part of /** @type {const} */ (["report", "explanation", "headline"]))
      if (parts.has(part)) this[part] = parts.get(part);
    if (this.report === null) {
      this.end();
      return;
    }
    if (parts.has("object")) this.showManifest();
    if (parts.has("training")) this.showTraining(parts.get("training"));
    if (parts.has("history")) this.showHistory(parts.get("history"));
    if (parts.has("events")) this.showEvents(parts.get("events"));
    if (parts.has("log")) this.takeLog(parts.get("log"));
    if (this.report && ["may", "report", "explanation"].some((part) => parts.has(part)))
      this.show();
  }

  // A job that was made again under its name is another job, and inherits nothing.
  /** @param {JobIdentity} object */
  isAnother({ uid }) {
    this.record.uid ??= uid;
    return this.record.uid !== uid;
  }

  // What was seen of a deleted job stays. What tells of the present goes, and nothing more is taken
  // in, because the server knows nothing of it any more.
  end() {
    text(find(".sentence", this.main), `${this.name} was deleted.`);
    this.tellDeleted(true);
    this.record.close(Date.now());
    this.changes.end();
    this.lanes.end();
  }

  /** @param {boolean} yes */
  tellDeleted(yes) {
    if (yes) this.main.dataset.deleted = "";
    else delete this.main.dataset.deleted;
  }

  show() {
    const { explanation } = this;
    const report = /** @type {JobReport} */ (this.report);
    this.tellDeleted(false);
    if (document.documentElement.dataset.live === "yes") this.record.add(report, Date.now());
    const badge = find(".badge", this.main);
    if (badge.dataset.state !== report.state)
      badge.replaceChildren(icon(icons(report.state), report.state));
    badge.dataset.state = report.state;
    text(
      find(".sentence", this.main),
      explanation ? `${this.headline}.` : `${this.name}: ${report.state}. Looking into its pods…`,
    );
    this.showFindings();
    this.showFacts();
    this.changes.show(report);
    this.lanes.show(
      report,
      new Map(explanation?.workers.map((worker) => [worker.name, worker.cause])),
    );
    keep(
      find("#next", this.main),
      report.next,
      (line) => line,
      (line) => el("li", {}, line),
    );
    keep(
      find("#hosts", this.main),
      report.hosts.length ? report.hosts : ["no host"],
      (line) => line,
      (line) => el("li", {}, line),
    );
    const lines = this.commands.map((line) =>
      line.endsWith("=") ? `${line}${report.desired ?? 1}` : line,
    );
    keep(
      find("#commands", this.main),
      lines,
      (line) => line,
      (line) => el("li", {}, command(line)),
    );
    this.tick(Date.now());
  }

  showFindings() {
    const { explanation } = this;
    const report = /** @type {JobReport} */ (this.report);
    const found = new Map();
    if (!explanation) return;
    const causes = explanation.workers.map((worker) => worker.cause);
    const said = [...explanation.job, ...causes].map((finding) => finding.says).join(" ");
    const notices = report.notices
      .filter((line) => !said.includes(line.slice(line.indexOf(": ") + 2)))
      .map((says) => ({ says, cause: says, level: "notice", nextStep: "" }));
    const troubles = causes.filter((cause) => cause.level !== "fine");
    for (const finding of [...explanation.job, ...troubles, ...notices]) {
      const key = `${finding.level} ${finding.cause}`;
      found.set(key, [...(found.get(key) ?? []), finding]);
    }
    const order = ["wrong", "waiting", "unknown", "notice", "fine"];
    const sorted = [...found].sort(
      ([, [one]], [, [other]]) => order.indexOf(one.level) - order.indexOf(other.level),
    );
    keep(
      find(".findings", this.main),
      sorted,
      ([key, same]) =>
        `${key}\n${same.map((finding) => finding.says + finding.nextStep).join("\n")}`,
      ([, same]) => this.finding(same),
    );
  }

  finding([first, ...same]) {
    const [shape, word] = LEVELS[first.level] ?? ["succeeded", "Fine"];
    const item = el(
      "li",
      { className: `level-${first.level}` },
      icon(shape),
      el("b", {}, word),
      el("span", {}, el("span", {}, sentence(first.says))),
    );
    if (same.length)
      item.lastChild.append(
        el(
          "details",
          {},
          el("summary", {}, `${same.length} more with the same cause`),
          el("ul", {}, ...same.map((finding) => el("li", {}, finding.says))),
        ),
      );
    if (first.nextStep) item.lastChild.append(command(first.nextStep));
    return item;
  }

  showFacts() {
    const report = /** @type {JobReport} */ (this.report);
    const { launcher, queue, lastScale } = report;
    const refreshed =
      launcher &&
      { true: "discover_hosts.sh is up to date", false: "discover_hosts.sh is not refreshed yet" }[
        launcher.refreshed
      ];
    const low = report.minReplicas ?? 1;
    const high = report.maxReplicas;
    const most = report.maxNpWorkers;
    const sizes = high ? `${low} to ${high}` : `${low} or more`;
    const bound = most && most < (high ?? Infinity) ? `; --max-np lets ${most} train` : "";
    const bounds = report.minReplicas || high ? `, ${sizes} allowed${bound}` : "";
    const devices = gpus(report) ? `, GPUs: ${gpus(report)}` : "";
    /** @type {[string, string | null | undefined, string?][]} */
    const all = [
      ["Workers", `${report.desired ?? "unknown"} asked for${devices}${bounds}`],
      [
        "Elastic",
        report.foreign ||
          (report.needsRestart
            ? "after a restart: mpijob-elastic upgrade adopt"
            : report.elastic
              ? `yes, ${report.slots} ${report.slots === 1 ? "slot" : "slots"} per worker`
              : "no"),
      ],
      [
        "Last change",
        lastScale ? `${lastScale.before}→${lastScale.after}` : "none yet",
        lastScale?.at,
      ],
      [
        "Queue",
        queue &&
          [
            queue.name,
            queue.workload &&
              `${queue.workload} waits${queue.place ? ` at place ${queue.place}` : ""}`,
            queue.says,
          ]
            .filter(Boolean)
            .join("; "),
      ],
      [
        "Launcher",
        launcher
          ? [launcher.phase, launcher.node && `on ${launcher.node}`, refreshed]
              .filter(Boolean)
              .join(", ")
          : "not created yet",
      ],
      ["Drain timeout", `${report.drainTimeout} s`],
      ["Created", "", report.created],
    ];
    keep(
      find(".facts", this.main),
      all.filter(([, words]) => words !== null && words !== undefined),
      ([name]) => name,
      ([name]) => el("div", {}, el("dt", {}, name), el("dd", {}, el("span"), el("span"))),
      (node, [, words, since]) => {
        text(node.lastChild.firstChild, words ?? "");
        node.lastChild.lastChild.dataset.since = since ?? "";
      },
    );
  }

  /** @param {TrainingReport} training */
  showTraining(training) {
    if (training.goodput) this.record.spend(training.goodput, Date.now());
    this.training.show(training);
  }

  /** @param {{changes: HistoryChange[]}} history */
  showHistory({ changes }) {
    this.record.remember(changes);
    find("#history", this.main).hidden = !changes.length;
    keep(
      find("#changes", this.main),
      changes.toReversed(),
      (change) => JSON.stringify(change),
      (change) => {
        const seconds = (words, found) => found !== null && `${words} after ${Math.round(found)} s`;
        const cut =
          change.ranksCut && `${change.ranksCut} ${change.ranksCut === 1 ? "rank" : "ranks"} cut`;
        const words = [
          seconds("listed", change.listedAfter),
          seconds("all trained", change.trainedAfter),
          change.secondsLost !== null &&
            `${Math.round(change.secondsLost)} s of workers or GPUs lost`,
          change.stepsRepeated && `${change.stepsRepeated} steps repeated`,
          cut,
          change.note,
        ].filter(Boolean);
        return el(
          "li",
          { className: "event" },
          when(change.when),
          el(
            "span",
            {},
            el("b", {}, `${change.from}→${change.to}`),
            " ",
            el("span", { className: "muted" }, change.cause, change.by ? `, by ${change.by}` : ""),
            el("br"),
            words.join("; ") || "not listed yet",
          ),
        );
      },
    );
  }

  showEvents({ items, error }) {
    const list = find("#events", this.main);
    const shown = items.length
      ? items
      : [{ message: error ?? "No Events in the last hour.", at: "", about: "" }];
    keep(
      list,
      shown,
      (event) => Object.values(event).join("\n"),
      (event) => {
        if (!event.at) return el("li", { className: "muted" }, event.message);
        const warns = event.type === "Warning";
        return el(
          "li",
          { className: "event" },
          when(event.at),
          el(
            "span",
            {},
            el(
              "b",
              { className: warns ? "warning" : "" },
              ...(warns ? [icon("wrong"), "Warning: "] : []),
              event.reason,
            ),
            " ",
            el(
              "span",
              { className: "muted" },
              event.about,
              event.count > 1 ? `, ${event.count} times` : "",
            ),
            el("br"),
            event.message,
          ),
        );
      },
    );
  }

  // The log of a launcher goes with its pod, so the page keeps what it has seen of it.
  /** @param {LogReport} log */
  takeLog(log) {
    const seen = this.log?.lines ?? [];
    const isSame = this.log?.uid === log.uid;
    if (seen.length && !isSame) this.former = seen;
    if (log.before.length) this.former = log.before;
    // A failed read has no lines. What was seen stays.
    const keeps = isSame && log.error !== undefined && !log.lines.length;
    this.log = keeps ? { ...log, lines: seen } : log;
    this.showLog();
  }

  showLog() {
    if (!this.log) return;
    const { pod, lines, error } = this.log;
    const sought = this.seek.value.trim().toLowerCase();
    const found = lines.filter((line) => line.toLowerCase().includes(sought));
    const last = sought ? `${found.length} of the last ${lines.length} lines` : "last lines";
    text(find("#log-of", this.main), pod ? `${last} of ${pod}` : "");
    text(find("#log", this.main), found.join("\n") || this.noLine(sought));
    const failed = find("#log-error", this.main);
    failed.hidden = !error;
    text(failed, error ?? "");
    const former = find(".former", this.main);
    former.hidden = !this.former.length;
    text(find("pre", former), this.former.join("\n"));
  }

  /** @param {string} sought */
  noLine(sought) {
    const { pod, lines, error } = /** @type {LogReport} */ (this.log);
    if (sought && lines.length) return "No line has these words.";
    if (error) return "";
    return pod ? "Nothing printed yet." : "There is no launcher.";
  }

  // A new read ends the read before, so that no older answer comes last.
  async showManifest() {
    this.reading.abort();
    this.reading = new AbortController();
    const { signal } = this.reading;
    const details = find("#yaml", this.main);
    if (!details.open) return;
    const words = await this.manifest(signal);
    if (!signal.aborted) text(find("pre", details), words);
  }

  /** @param {AbortSignal} signal */
  async manifest(signal) {
    try {
      const answer = await fetch(`${this.path}/yaml`, { signal, headers: authorized() });
      return await answer.text();
    } catch {
      return "The server of this page has stopped or cannot be reached.";
    }
  }

  tick(now) {
    if (!this.report || document.documentElement.dataset.live !== "yes") return;
    this.lanes.draw(now);
    const look =
      this.report.nextLook &&
      Math.max(0, Math.round((Date.parse(this.report.nextLook) - now) / 1000));
    text(
      find("#look", this.main),
      look === null ? "the plan as of now" : `the plan as of now; next check in ${look} s`,
    );
    for (const since of this.main.querySelectorAll("[data-since]")) {
      text(since, since.dataset.since ? ` ${age(now - Date.parse(since.dataset.since))} ago` : "");
    }
  }
}
