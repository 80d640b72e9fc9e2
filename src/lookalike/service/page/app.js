// The frame of the page: the collection and the view in the URL, and the API key if the service needs one.

import { api, keep } from "./api.js";
import { during, fill, h, problem, shown } from "./dom.js";
import { documentView } from "./views/document.js";
import { groupsView } from "./views/groups.js";
import { fileSearchView, fileUploadView } from "./views/files.js";
import { healthView } from "./views/health.js";
import { mapView } from "./views/map.js";
import { noun } from "./views/preview.js";
import { searchView } from "./views/search.js";
import { uploadView } from "./views/upload.js";

const VIEWS = {
  search: ["Search", searchView],
  groups: ["Groups", groupsView],
  map: ["Map", mapView],
  health: ["Health", healthView],
  upload: ["Upload", uploadView],
};
/** Documents of many parts have no distances, so they have no groups and no map. */
const viewsOf = ({ parts }) => Object.entries(VIEWS).filter(([key]) => !parts || !["groups", "map"].includes(key));
const OF_FILES = { search: fileSearchView, upload: fileUploadView };
const main = document.getElementById("main");
const chooser = document.getElementById("collection");
const views = document.getElementById("views");

let collections = [];
let leaving = new AbortController();

/** `#/NAME/VIEW/REST`, each part encoded. */
function address() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").map((one) => {
    try { return decodeURIComponent(one); } catch { return one; }
  });
  return { name: parts[0] || null, view: parts[1] || "search", rest: parts.slice(2) };
}

export const link = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

async function show(focus) {
  const { name, view, rest } = address();
  leaving.abort();
  leaving = new AbortController();
  const known = collections.find((one) => one.name === name);
  if (known === undefined) {
    if (name === null && collections.length) return void location.replace(link(collections[0].name, "search"));
    frame(undefined, null);
    fill(main, h("h1", {}, name === null ? "No collections" : "Collection not found"),
      h("p", {}, name === null ? "The service has no collections yet. Create one with POST /v1/collections, or start the service with a database that has some." : shown(name)));
    return;
  }
  frame(known, view);
  const shower = view === "document" ? documentView : (noun(known) && OF_FILES[view]) || VIEWS[view]?.[1];
  document.title = `${view === "document" ? shown(rest[0] ?? "") : VIEWS[view]?.[0] ?? "?"} · ${shown(name)} · lookalike`;
  if (shower === undefined) return void fill(main, problem({ title: "Page not found", message: view }));
  const place = h("div");
  fill(main, place);
  if (focus) main.focus({ preventScroll: true });
  scrollTo(0, 0);
  await during(place, () => shower(place, { collection: known, name, rest, link, signal: leaving.signal }));
}

function frame(known, current) {
  const name = known?.name ?? null;
  chooser.hidden = collections.length === 0;
  fill(chooser, collections.map((one) => h("option", { value: one.name, selected: one.name === name }, shown(one.name))));
  views.hidden = name === null;
  fill(views, name === null ? [] : viewsOf(known).map(([key, [title]]) =>
    h("a", { href: link(name, key), "aria-current": key === current ? "page" : null }, title)));
}

async function start() {
  try {
    collections = (await api.collections()).collections;
  } catch (error) {
    if (error.status === 401) askForKey(error);
    else fill(main, problem(error), h("p", {}, h("button", { onclick: start, class: "main" }, "Try again")));
    return;
  }
  await show(false);
}

function askForKey(error) {
  const field = h("input", { type: "password", autocomplete: "current-password", id: "key", size: 40, required: true });
  const enter = (event) => {
    event.preventDefault();
    keep(field.value.trim());
    start();
  };
  fill(main, h("h1", {}, "This service needs an API key"), h("form", { class: "card", onsubmit: enter },
    h("p", { class: "soft" }, shown(error.message)), h("div", { class: "options" },
      h("label", { class: "grow", for: "key" }, "API key", field), h("div", { class: "buttons" }, h("button", { class: "main" }, "Continue")))));
  field.focus();
}

const THEMES = ["auto", "light", "dark"];
const button = document.getElementById("theme");

function drawTheme() {
  const now = document.documentElement.dataset.theme ?? "auto";
  button.textContent = { auto: "◐", light: "☀", dark: "☾" }[now];
  button.title = `Colors: ${now}`;
  button.setAttribute("aria-label", `Colors: ${now}. Change`);
}

button.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "auto";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try { localStorage.setItem("lookalike-theme", next); } catch { /* storage may be forbidden */ }
  drawTheme();
});

chooser.addEventListener("change", () => { location.hash = link(chooser.value, address().view === "document" ? "search" : address().view); });
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part of the address behind # is the view, not an element
  main.focus();
});
addEventListener("hashchange", () => show(true));
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  const field = document.getElementById("text");
  if (event.key === "/" && !typing && field && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    field.focus();
  }
});
drawTheme();
start();
