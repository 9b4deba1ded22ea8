// @ts-check
// The frame of both pages: the page that is shown, whether it is live, the theme, and its pauses.

import { age, at, el, find, sentence, text } from "./dom.js";
import { JobView } from "./job.js";
import { JobsView } from "./jobs.js";
import { Stream } from "./stream.js";

const REST_AFTER = 30 * 60_000; // milliseconds without a key or a pointer
let view;
let stream;
let state = {};
let lastInput = Date.now();
let resting = false;

function route() {
  const [namespace, name] = decodeURIComponent(location.hash.slice(2)).split("/");
  stream?.close();
  view?.leave?.();
  view = name ? new JobView(namespace, name, route) : new JobsView();
  const template = find(name ? "#job-view" : "#jobs-view");
  find("#main").replaceChildren(template.content.cloneNode(true));
  find("#path").replaceChildren(...crumbs(namespace, name));
  document.title = `${name ? `${namespace}/${name}` : "Jobs"} · mpijob-elastic`;
  view.enter(find("#main"));
  connect();
}

function crumbs(namespace, name) {
  const jobs = el("li", {}, name ? el("a", { href: "#/" }, "Jobs") : "Jobs");
  const last = name ? [el("li", {}, namespace), el("li", {}, name)] : [jobs];
  last.at(-1).setAttribute("aria-current", "page");
  return name ? [jobs, ...last] : last;
}

function connect() {
  stream?.close();
  if (document.hidden || resting) return;
  const shown = view;
  show({ words: "" });
  stream = new Stream(shown.path, {
    onOpen: () => shown.opened?.(),
    onState: show,
    onParts: (parts) => {
      if (parts.has("about"))
        text(find("#cluster"), parts.get("about").cluster.replace(/^https?:\/\//, ""));
      if (!state.live && !state.words) show({ live: true });
      shown.take(parts);
    },
  });
}

function show(next) {
  if (state.live && !next.live) state = { ...next, since: Date.now() };
  else state = { since: state.live ? undefined : state.since, ...next };
  if (!state.live) view?.stale?.();
  view?.refuse?.((!state.live && state.refused) || "");
  tellState();
  if (state.live) view?.live?.();
}

function tellState() {
  const { live, words, again, since, refused } = state;
  const banner = find("#banner");
  const button = find("button", banner);
  document.documentElement.dataset.live = live ? "yes" : words || resting ? "no" : "";
  text(
    find("#live"),
    live
      ? "Live"
      : resting
        ? "Paused"
        : !words
          ? "Connecting…"
          : refused
            ? "Not shown"
            : "Not live",
  );
  banner.hidden = live || !(words || resting) || find("#main").dataset.absent !== undefined;
  if (banner.hidden) return;
  const old = since && !resting ? ` The page shows the state of ${at(since)}.` : "";
  const soon = again ? ` Next try in ${age(again - Date.now() + 999)}.` : "";
  text(
    find("span", banner),
    resting
      ? "Paused after 30 minutes without a key or a click."
      : `${sentence(words)}${old}${soon}`,
  );
  button.hidden = !(again || resting);
  text(button, resting ? "Continue" : "Try now");
}

function wake() {
  lastInput = Date.now();
  if (!resting) return;
  resting = false;
  connect();
}

const THEMES = ["auto", "light", "dark"];
function theme(chosen) {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  localStorage.setItem("theme", chosen);
  text(find("#theme span"), chosen);
  find("#theme").setAttribute("aria-label", `Theme: ${chosen}`);
}

const chosenTheme = () => localStorage.getItem("theme") ?? "";

theme(THEMES.includes(chosenTheme()) ? chosenTheme() : "auto");
find("#theme").addEventListener("click", () =>
  theme(THEMES[(THEMES.indexOf(chosenTheme()) + 1) % 3]),
);
find("#banner button").addEventListener("click", () => (resting ? wake() : connect()));
for (const kind of ["keydown", "pointerdown", "wheel"])
  addEventListener(kind, wake, { passive: true });
addEventListener("keydown", (event) => view?.key?.(event));
addEventListener("hashchange", () => location.hash.startsWith("#/") && route());
find(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("#main").focus();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.close();
    view?.stale?.();
  } else connect();
});
setInterval(() => {
  if (document.hidden) return;
  if (!resting && Date.now() - lastInput > REST_AFTER) {
    resting = true;
    stream?.close();
    show({});
  }
  if (!state.live) tellState();
  view?.tick?.(Date.now());
}, 1000);
route();
