// @ts-check
// A stream of JSON lines, read with fetch, that is opened again by itself. The token is kept for
// this tab only.

const given = new URLSearchParams(location.hash.slice(1));
if (given.has("token")) {
  sessionStorage.setItem("token", given.get("token") ?? "");
  history.replaceState(null, "", given.has("job") ? `#/${given.get("job")}` : "#/");
}

// The header that brings the token along.
export const authorized = () => ({
  Authorization: `Bearer ${sessionStorage.getItem("token") ?? ""}`,
});

const SILENCE = 6000; // milliseconds; the server sends a line every 2 s
const RETRIES = [300, 1000, 2000, 4000]; // milliseconds
const AFTER_REFUSAL = 10000; // milliseconds
const NO_LINK =
  "This tab has no valid link. Open the link that mpijob-elastic dashboard printed, " +
  "or start the command again.";

export class Stream {
  failures = 0;
  silent = false;
  closed = false;
  /** @type {string | false} why the server refuses to show the page, false while it does not */
  refused = false;
  /** @type {Map<string, any>} parts that are not handed over yet */
  due = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
  /** @type {AbortController} */
  abort;

  /**
   * @param {string} path
   * @param {object} to
   * @param {(parts: Map<string, any>) => void} to.onParts gets the newest value of parts, by name
   * @param {(state: StreamState) => void} to.onState
   * @param {() => void} to.onOpen
   */
  constructor(path, { onParts, onState, onOpen }) {
    this.path = path;
    this.onParts = onParts;
    this.onState = onState;
    this.onOpen = onOpen;
    this.open();
  }

  async open() {
    clearTimeout(this.timer);
    this.abort = new AbortController();
    const { signal } = this.abort;
    let words = "The server of this page has stopped or cannot be reached.";
    try {
      const answer = await fetch(this.path, {
        signal,
        cache: "no-store",
        headers: authorized(),
      });
      if (answer.status === 401) return this.onState({ words: NO_LINK, refused: NO_LINK });
      if (!answer.ok) throw new Error(await answer.text());
      this.due.clear();
      this.onOpen();
      const body = /** @type {ReadableStream<Uint8Array>} */ (answer.body);
      words = (await this.read(body.getReader(), signal)) ?? words;
    } catch (caught) {
      const error = /** @type {Error} */ (caught);
      if (signal.aborted && !this.silent) return;
      if (!(error instanceof TypeError) && error.name !== "AbortError") words = error.message;
    }
    if (this.closed) return;
    const wait = this.refused
      ? AFTER_REFUSAL
      : RETRIES[Math.min(this.failures++, RETRIES.length - 1)];
    this.onState({ words, again: Date.now() + wait, refused: this.refused });
    this.timer = setTimeout(() => this.open(), wait);
  }

  /**
   * Take in all lines; return the reason that the server gave for ending the stream, if any.
   * @param {ReadableStreamDefaultReader<Uint8Array>} reader
   * @param {AbortSignal} signal
   */
  async read(reader, signal) {
    const decoder = new TextDecoder();
    let rest = "";
    this.refused = this.silent = false;
    for (;;) {
      const watch = setTimeout(() => {
        this.silent = true;
        this.abort.abort();
      }, SILENCE);
      const { value, done } = await reader.read().finally(() => clearTimeout(watch));
      if (done || signal.aborted) return this.refused || undefined;
      this.failures = 0;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = /** @type {string} */ (lines.pop());
      for (const line of lines) if (line) this.take(JSON.parse(line));
    }
  }

  take({ part, value }) {
    if (part === "refused") this.refused = value;
    else if (part === "lost") this.onState(value ? { words: value } : { live: true });
    else {
      if (!this.due.size) requestAnimationFrame(() => this.hand());
      this.due.set(part, value);
    }
  }

  // Hand over a few parts in each frame, so that no task is long.
  hand() {
    if (this.closed) return;
    const some = new Map([...this.due].slice(0, 25));
    for (const part of some.keys()) this.due.delete(part);
    this.onParts(some);
    if (this.due.size) requestAnimationFrame(() => this.hand());
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.abort.abort();
  }
}
