// @ts-check
// Buttons that change the job. The server says what a change would do; the change is made once the
// user agrees to these words.

import { el, find, keep, text } from "./dom.js";
import { authorized } from "./stream.js";

const MOST = 10000; // workers
const OVER = ["Succeeded", "Failed", "Terminating"];

export class Changes {
  sending = new AbortController();
  /** what follows the change that was tried, in words: who leaves, and how long that may take */
  foretold = "";
  /** what the server knows this question by */
  confirms = "";
  /** @type {any} elements of index.html */
  main;
  /** @type {any} */
  bar;
  /** @type {any} */
  dialog;
  /** @type {any} */
  size;
  /** @type {any} */
  worker;
  /** @type {JobReport} the report that was shown last */
  report;
  /** @type {boolean | undefined} whether the user has the right to change the job */
  may;
  /** @type {string | undefined} the size that the page itself wrote into its field */
  shown;
  /** @type {{change: string, number: number}} the change that the user was asked about */
  asked;

  constructor(path, name) {
    this.path = `${path}/change`;
    this.name = name;
  }

  enter(main) {
    [this.main, this.bar, this.dialog] = [main, find(".changes", main), find("dialog", main)];
    [this.size, this.worker] = this.bar.querySelectorAll("input, select");
    this.worker.addEventListener("input", () => this.show(this.report));
    find("form", this.bar).addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(event.submitter);
    });
    for (const button of this.dialog.querySelectorAll("button"))
      button.addEventListener("click", () => this.dialog.close(button.value));
    this.dialog.addEventListener(
      "close",
      () =>
        this.dialog.returnValue && this.send({ ...this.asked, confirmed: this.dialog.returnValue }),
    );
  }

  // A job whose shown state is old must not be changed.
  live(yes) {
    for (const button of this.main.querySelectorAll(".changes button, dialog button:last-child"))
      button.disabled = !yes;
  }

  // Nobody can agree to a change of a deleted job.
  end() {
    this.sending.abort();
    this.dialog.close();
  }

  // Without the right to change the job, the bar is hidden.
  show(report) {
    this.report = report;
    this.bar.hidden = !this.may || !report.elastic || OVER.includes(report.state);
    this.size.min = report.minReplicas ?? 1;
    this.size.max = report.maxReplicas ?? MOST;
    if (["", this.shown].includes(this.size.value)) this.size.value = report.desired ?? "";
    this.shown = `${report.desired ?? ""}`;
    const all = [
      ...new Set([...report.workers.map((worker) => worker.index), ...report.parked]),
    ].sort((one, other) => one - other);
    const parked = (index) => report.parked.includes(Number(index));
    keep(
      this.worker,
      all,
      String,
      (value) => el("option", { value }),
      (option, index) =>
        text(option, `${report.name}-worker-${index}${parked(index) ? ", parked" : ""}`),
    );
    const [, park, stop] = this.bar.querySelectorAll("button");
    for (const [button, word] of [
      [park, parked(this.worker.value) ? "Unpark" : "Park"],
      [stop, report.state === "Suspended" ? "Resume" : "Suspend"],
    ]) {
      text(button, word);
      button.value = word.toLowerCase();
    }
  }

  async ask({ value: change, textContent }) {
    this.asked = {
      change,
      number: Number(
        { scale: this.size, park: this.worker, unpark: this.worker }[change]?.value ?? 0,
      ),
    };
    const words = await this.send(this.asked);
    if (!words || this.dialog.open) return;
    text(find("h2", this.dialog), `${textContent} ${this.name}?`);
    text(find("p", this.dialog), words);
    text(find(".leaves", this.dialog), this.foretold);
    Object.assign(find("button:last-child", this.dialog), { value: this.confirms, textContent });
    this.dialog.returnValue = "";
    this.dialog.showModal();
  }

  // Return the words for what the change would do, "" if the change is refused or made. A new
  // request ends the news of the request before.
  async send(asked) {
    this.sending.abort();
    this.sending = new AbortController();
    const { signal } = this.sending;
    const said = find("p", this.bar);
    const headers = { ...authorized(), "Content-Type": "application/json" };
    this.foretold = "";
    let asks = "";
    let says = "";
    let rest = "";
    const take = ({ part, value }) => {
      if (part === "asks") asks = value;
      else if (part === "foretold") this.foretold = value;
      else if (part === "confirms") this.confirms = value;
      else if (part === "progress") text(said, `${says}: ${value}`);
      else if (value && part !== "about") {
        says = [value].flat().join("\n");
        text(said, says);
      }
    };
    text(said, "");
    try {
      const answer = await fetch(this.path, {
        method: "POST",
        signal,
        headers,
        body: JSON.stringify(asked),
      });
      if (!answer.ok) throw new Error(await answer.text());
      const body = /** @type {ReadableStream<BufferSource>} */ (answer.body);
      for (const reader = body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
        const { value, done } = await reader.read();
        if (done) return asks;
        const lines = (rest + value).split("\n");
        rest = /** @type {string} */ (lines.pop());
        for (const line of lines.filter(Boolean)) take(JSON.parse(line));
      }
    } catch (error) {
      if (!signal.aborted)
        text(
          said,
          error instanceof TypeError
            ? `${says} The server of this page has stopped or cannot be reached.`
            : /** @type {Error} */ (error).message,
        );
    }
  }
}
