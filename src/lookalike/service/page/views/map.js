// The map: documents as dots, regions as areas around them; it can be zoomed, moved, and read by keyboard.

import { api } from "../api.js";
import { beginning, counted, fill, h, number, say, shown, svg } from "../dom.js";

const WIDTH = 1000;
const HEIGHT = 620;
const MOST_ZOOM = 24;
const SHOWN = 30;

export async function mapView(place, { name, link, signal }) {
  const told = await api.map(name, signal);
  fill(place, h("h1", {}, "Map"));
  if (!told.places.length) return void place.append(h("p", {}, "The collection is empty."));
  const panel = h("div", { "aria-live": "polite" });
  const areas = arranged(told);
  const drawn = told.places.length < told.signatures ? `${number(told.places.length)} of ${counted(told.signatures, "signature")} (a random sample)` : counted(told.signatures, "signature");
  place.append(
    h("p", { class: "soft" }, `${drawn}, in ${counted(areas.length, "region")}. A region is a cluster; its area grows with its number of signatures. Similar regions are near each other, as far as two dimensions can show it. Choose a region to see its documents. Zoom with the wheel, two fingers, or + and −.`),
    atlas(areas, (area) => showRegion(panel, area, { name, link }), (id) => { location.hash = link(name, "document", id); }), panel);
}

/** Regions as circles that do not cover each other, near where they are among the others; their documents in them. */
export function arranged({ regions, places }) {
  const areas = regions.map((region) => ({ region, dots: [], x: region.x, y: region.y, r: 0 }));
  for (const one of places) areas[one.region].dots.push({ id: one.id, far: Math.hypot(one.x - areas[one.region].x, one.y - areas[one.region].y) });
  const full = areas.filter((area) => area.dots.length);
  const tall = innerWidth < 720; // a phone: the longer side of the map goes down
  const unit = Math.sqrt((0.5 * WIDTH * HEIGHT) / (Math.PI * places.length));
  for (const area of full) {
    area.r = Math.max(9, unit * Math.sqrt(area.dots.length));
    [area.x, area.y] = [0.5 * WIDTH * area.x, 0.5 * HEIGHT * area.y];
    if (tall) [area.x, area.y] = [area.y, area.x];
  }
  for (let round = 0; round < 300 && pushed(full); round++);
  for (const area of full) {
    area.dots.sort((a, b) => a.far - b.far); // the most central ones in the middle, as seeds lie in a sunflower
    area.dots.forEach((dot, place) => {
      const far = 0.93 * area.r * Math.sqrt((place + 0.5) / area.dots.length), turn = place * 2.399963;
      dot.x = area.x + far * Math.cos(turn);
      dot.y = area.y + far * Math.sin(turn);
    });
  }
  return full;
}

/** Push circles that cover each other apart, the smaller one further; say whether there were any. */
function pushed(areas) {
  let any = false;
  for (let i = 0; i < areas.length; i++) for (let j = i + 1; j < areas.length; j++) {
    const a = areas[i], b = areas[j];
    const dx = b.x - a.x || 0.01 * (j - i), dy = b.y - a.y, far = Math.hypot(dx, dy);
    const over = a.r + b.r + 4 - far;
    if (over <= 0.2) continue;
    any = true;
    const share = b.r ** 2 / (a.r ** 2 + b.r ** 2);
    a.x -= (over * share * dx) / far;
    a.y -= (over * share * dy) / far;
    b.x += (over * (1 - share) * dx) / far;
    b.y += (over * (1 - share) * dy) / far;
  }
  return any;
}

function atlas(areas, choose, open) {
  const edge = 14;
  const least = (of) => areas.reduce((found, one) => Math.min(found, of(one)), Infinity);
  const box = { left: least((one) => one.x - one.r) - edge, top: least((one) => one.y - one.r) - edge,
    right: -least((one) => -one.x - one.r) + edge, bottom: -least((one) => -one.y - one.r) + edge };
  const whole = { x: box.left, y: box.top, w: box.right - box.left, h: box.bottom - box.top };
  let view = { ...whole };
  const dots = svg("g", { class: "dots" }, areas.map((area, place) => svg("g", { class: `hue${place % 8}` },
    area.dots.map((dot) => svg("circle", { cx: dot.x, cy: dot.y, r: 1, "data-id": dot.id }, svg("title", {}, shown(dot.id)))))));
  dots.addEventListener("click", (event) => {
    if (!dragged && event.target.dataset.id !== undefined) open(event.target.dataset.id);
  });
  // How far dots are from each other where they are closest: they do not cover each other.
  const between = least((area) => area.r * Math.sqrt(Math.PI / area.dots.length));
  const marks = areas.map((area, place) => mark(area, place));
  const labels = svg("g", { class: "labels", "aria-hidden": "true" });
  const drawing = svg("svg", { role: "group", "aria-label": "Regions of the collection", tabindex: "0", preserveAspectRatio: "xMidYMid meet" }, marks, dots, labels);

  function mark(area, place) {
    const group = svg("g", { role: "button", tabindex: "0", "aria-pressed": "false", class: `hue${place % 8}`, "aria-label": `${title(area.region)}: ${counted(area.region.size, "signature")}` },
      svg("circle", { cx: area.x, cy: area.y, r: area.r }));
    const take = () => {
      for (const one of marks) one.setAttribute("aria-pressed", String(one === group));
      choose(area);
    };
    group.addEventListener("click", () => { if (!dragged) take(); });
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); take(); }
    });
    return group;
  }

  // Letters and dots stay as large on the screen however far one has zoomed; there is as much of a label as has room.
  function letter() {
    const across = drawing.clientWidth || 800, down = drawing.clientHeight || 500;
    const scale = Math.min(across / view.w, down / view.h), size = 13 / scale;
    dots.style.setProperty("--dot", `${Math.min(Math.min(5, 2 + 0.4 * (whole.w / view.w)) / scale, between / 3)}px`);
    const nodes = [];
    for (const area of areas) {
      const room = 1.9 * area.r * scale; // pixels across
      const lines = wrapped(title(area.region), Math.floor(room / 7.6), Math.floor(room / 44));
      lines.forEach((line, row) => nodes.push(svg("text", {
        x: area.x, y: area.y + (0.35 + 1.2 * (row - (lines.length - 1) / 2)) * size, "font-size": size, "stroke-width": 3.5 / scale,
      }, line)));
    }
    labels.replaceChildren(...nodes);
  }

  function look(next) {
    const w = Math.min(whole.w, Math.max(whole.w / MOST_ZOOM, next.w)), factor = w / next.w;
    const hh = next.h * factor;
    const keep = (value, least, length, all) => Math.min(Math.max(value, least - 0.3 * length), least + all - 0.7 * length);
    view = { x: keep(next.x, whole.x, w, whole.w), y: keep(next.y, whole.y, hh, whole.h), w, h: hh };
    if (w >= whole.w) view = { ...whole };
    drawing.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
    letter();
  }

  function zoom(factor, px, py) {
    const at = point(px ?? drawing.clientWidth / 2, py ?? drawing.clientHeight / 2);
    look({ x: at.x - (at.x - view.x) * factor, y: at.y - (at.y - view.y) * factor, w: view.w * factor, h: view.h * factor });
  }

  /** Where a place of the screen is on the map. */
  function point(px, py) {
    const across = drawing.clientWidth, down = drawing.clientHeight, scale = Math.min(across / view.w, down / view.h);
    return { x: view.x + (px - (across - view.w * scale) / 2) / scale, y: view.y + (py - (down - view.h * scale) / 2) / scale, scale };
  }

  const touching = new Map();
  let dragged = false;
  drawing.addEventListener("pointerdown", (event) => {
    touching.set(event.pointerId, event);
    if (touching.size === 1) dragged = false;
  });
  drawing.addEventListener("pointermove", (event) => {
    const before = touching.get(event.pointerId);
    if (!before) return;
    const { scale } = point(0, 0);
    const others = [...touching.values()].filter((one) => one.pointerId !== event.pointerId);
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (others.length === 0) {
      if (!dragged && Math.hypot(dx, dy) < 4) return;
      if (!dragged) drawing.setPointerCapture(event.pointerId);
      dragged = true;
      drawing.classList.add("moving");
      look({ ...view, x: view.x - dx / scale, y: view.y - dy / scale });
    } else {
      dragged = true;
      const far = (one) => Math.hypot(one.clientX - others[0].clientX, one.clientY - others[0].clientY) || 1;
      const frame = drawing.getBoundingClientRect();
      zoom(far(before) / far(event), (event.clientX + others[0].clientX) / 2 - frame.left, (event.clientY + others[0].clientY) / 2 - frame.top);
    }
    touching.set(event.pointerId, event);
  });
  const up = (event) => {
    touching.delete(event.pointerId);
    drawing.classList.remove("moving");
  };
  drawing.addEventListener("pointerup", up);
  drawing.addEventListener("pointercancel", up);
  drawing.addEventListener("wheel", (event) => {
    event.preventDefault();
    const frame = drawing.getBoundingClientRect();
    zoom(Math.exp(Math.min(0.5, Math.max(-0.5, event.deltaY * 0.0016))), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  drawing.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "+" || event.key === "=") zoom(0.75);
    else if (event.key === "-") zoom(1 / 0.75);
    else if (event.key === "0") look(whole);
    else if (moves[event.key]) look({ ...view, x: view.x + 0.12 * view.w * moves[event.key][0], y: view.y + 0.12 * view.h * moves[event.key][1] });
    else return;
    event.preventDefault();
  });
  new ResizeObserver(letter).observe(drawing);
  drawing.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  const press = (sign, name, action) => h("button", { type: "button", "aria-label": name, title: name, onclick: action }, sign);
  return h("div", { class: "card atlas" }, drawing,
    h("div", { class: "zoom" }, press("+", "Zoom in", () => zoom(0.7)), press("−", "Zoom out", () => zoom(1 / 0.7)), press("⤢", "Show all", () => look(whole))));
}

/** The beginning of a text, cut to a number of lines and letters; empty if not even one word fits. */
function wrapped(text, letters, most) {
  const lines = [];
  for (const word of beginning(text, 120).split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= letters) lines[lines.length - 1] = `${last} ${word}`;
    else if (lines.length < most && word.length <= letters) lines.push(word);
    else break;
  }
  if (lines.length) lines.push(lines.pop().replace(/,$/, "")); // where the next word has no room
  return lines;
}

/** What a region is called: its words, else the beginning of its most central text. */
function title(region) {
  return region.words?.length ? region.words.slice(0, 3).join(", ") : region.text ?? region.example;
}

function showRegion(panel, { region, dots }, { name, link }) {
  fill(panel, h("div", { class: "card" },
    h("h2", {}, beginning(title(region), 120)),
    h("p", { class: "soft" }, `${counted(region.size, "signature")}, ${region.mean_distance.toFixed(0)} bits from the center on average. The most central document: `,
      h("a", { class: "id", href: link(name, "document", region.example) }, shown(region.example))),
    region.text ? h("p", { class: "begin" }, beginning(region.text)) : null,
    h("p", {}, "On the map: ", dots.slice(0, SHOWN).map((dot, place) => [place ? ", " : "", h("a", { class: "id", href: link(name, "document", dot.id) }, shown(dot.id))]),
      dots.length > SHOWN ? ` and ${number(dots.length - SHOWN)} more` : "")));
  say(`${title(region)}: ${counted(region.size, "signature")}`);
}
