// Create elements. Texts of documents, ids and names are untrusted: they become text nodes, never markup.

const ORDERS = /[\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const STRANGE = /[\u0080-\u009f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Text without invisible characters: control characters become symbols, direction marks their code points. */
export function shown(text) {
  return String(text)
    .replaceAll("\r\n", "\n")
    .replace(CONTROLS, (one) => String.fromCharCode(one === "\x7f" ? 0x2421 : 0x2400 + one.charCodeAt(0)))
    .replace(STRANGE, "\ufffd")
    .replace(ORDERS, (one) => `\u2039U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u203a`);
}

/** The beginning of a text, in one line. */
export function beginning(text, most = 300) {
  const line = String(text).slice(0, 4 * most).replace(/\s+/g, " ").trim();
  return shown(line.length > most ? `${line.slice(0, most).trimEnd()}…` : line);
}

const SVG = "http://www.w3.org/2000/svg";

/** An element. Properties: `class`, `on…` functions, `style` as an object, else attributes; children: nodes or text. */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(element.style, value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** Replace the content of an element. */
export function fill(place, ...children) {
  place.replaceChildren(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return place;
}

/** Announce a text to screen readers. */
export function say(text) {
  document.getElementById("status").textContent = text;
}

export const number = (value) => Number(value).toLocaleString("en");

export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "< 0.1%"; // not rounded to nothing, nor to everything
  return value > 99.9 && value < 100 ? "> 99.9%" : `${value.toFixed(value < 10 || value > 99 ? 1 : 0).replace(/\.0$/, "")}%`;
}

export function size(bytes) {
  let value = bytes, unit = "bytes";
  for (const next of ["kB", "MB", "GB", "TB"]) {
    if (value < 1000) break;
    [value, unit] = [value / 1000, next];
  }
  return unit === "bytes" ? counted(bytes, "byte") : `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

export function moment(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? shown(text) : h("time", { datetime: date.toISOString() }, date.toLocaleString());
}

export function problem(error) {
  return h("div", { class: "problem", role: "alert" }, h("b", {}, shown(error.title ?? "The request failed")), h("p", {}, shown(error.message)));
}

/** Run an action; show that it is loading, unless it has shown something itself, or its error. */
export async function during(place, work) {
  const before = place.firstChild;
  const wait = setTimeout(() => {
    if (place.firstChild === before) fill(place, h("p", { class: "soft" }, "Loading …"));
  }, 150);
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") {
      clearTimeout(wait);
      fill(place, problem(error));
      say(error.message);
    }
    return undefined;
  } finally {
    clearTimeout(wait);
  }
}
