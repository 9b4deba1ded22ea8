// @ts-check
// Small helpers: elements, texts that are written only when they differ, times in the reader's
// zone. Text is never parsed as HTML.

/** @returns {any} an element of index.html */
export const find = (selector, root = document) => root.querySelector(selector);

/** @returns {any} a new element with these properties or attributes */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== "role") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** @returns {any} a new element of SVG */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  made.append(...children);
  return made;
}

export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

/**
 * @param {Element} node
 * @param {string} value
 */
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

export const icon = (name, kind = "") =>
  svg("svg", { class: `icon ${kind}`, "aria-hidden": "true" }, svg("use", { href: `#i-${name}` }));

// Return a function that gives the focus back to the element that has the focus now, because an
// element that moves loses the focus.
export function focusKept() {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  return () => {
    if (focused !== document.activeElement && focused?.isConnected)
      focused.focus({ preventScroll: true });
  };
}

/**
 * Keep one child of `parent` for each item, by key and in order; only what differs is written.
 * Items with equal keys have a child each.
 * @template T
 * @param {any} parent
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => any} make
 * @param {(child: any, item: T) => unknown} [fill]
 */
export function keep(parent, items, key, make, fill) {
  const refocus = focusKept();
  const old = byKey(parent.children);
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let child = old.get(name)?.shift();
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
    fill?.(child, item);
  }
  for (const child of [...old.values()].flat()) child.remove();
  refocus();
}

/** @param {Iterable<any>} children */
function byKey(children) {
  /** @type {Map<string, any[]>} */
  const found = new Map();
  for (const child of children) {
    const same = found.get(child.dataset.key);
    if (same) same.push(child);
    else found.set(child.dataset.key, [child]);
  }
  return found;
}

// Return words with a full stop, unless they end a sentence already.
/** @param {string} words */
export const sentence = (words) => words.replace(/[^.?!]$/, "$&.");

/** @param {number} value */
export const percent = (value) => `${value.toFixed(2)}%`;

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
export const at = (time) => clock.format(new Date(time));

export function when(time) {
  return el(
    "time",
    { dateTime: new Date(time).toISOString(), title: full.format(new Date(time)) },
    at(time),
  );
}

/**
 * Return a duration in one unit, as kubectl writes it.
 * @param {number} milliseconds
 */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  for (const [unit, size, most] of /** @type {[string, number, number][]} */ ([
    ["s", 1, 120],
    ["m", 60, 120],
    ["h", 3600, 48],
  ])) {
    if (seconds < size * most) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${Math.floor(seconds / 86400)}d`;
}

/**
 * Return the GPUs of a job and its slices of GPUs in words, such as "4, 2 mig-1g.10gb"; "" for none.
 * @param {JobReport} report
 */
export function gpus(report) {
  const slices = Object.entries(report.slices).map(([name, count]) => [
    name.split("/").at(-1),
    count,
  ]);
  const parts = slices.map(([name, count]) => `${count} ${name}`);
  return [...(report.gpus ? [`${report.gpus}`] : []), ...parts].join(", ");
}

export function command(line) {
  const button = el("button", { type: "button", className: "small" }, "Copy");
  button.setAttribute("aria-label", `Copy ${line}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(line);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return el("span", { className: "command" }, el("code", {}, line), button);
}
