// Two texts beside each other, with the words that differ marked; long stretches that are equal are cut short.

import { counted, h, number, percent, shown } from "../dom.js";

const LONG = 600;
const EDGE = 220;

/** `told`: what the service says of two texts. */
export function diff(told, left, right) {
  const parts = told.diff?.parts ?? [];
  return h("div", {},
    h("p", { class: "soft" }, summary(told)),
    told.equal ? null : h("div", { class: "sides" },
      side(left, parts, "insert"), side(right, parts, "delete")),
    told.diff && !told.diff.complete ? h("p", { class: "soft" }, "The texts differ so much that the rest is not compared word by word.") : null);
}

function summary(told) {
  if (told.equal) return "The texts are equal.";
  const likeness = told.methods?.[0];
  const words = (told.words ?? []).map((count) => number(count));
  return [
    likeness ? `Exact similarity ${percent(likeness.exact)} (${likeness.measure} of ${likeness.unit})` : null,
    told.containment ? `${percent(told.containment.exact)} of the smaller one is in the other` : null,
    words.length === 2 ? `${words[0]} and ${words[1]} words` : null,
  ].filter(Boolean).join(" · ");
}

function side(title, parts, without) {
  const kept = parts.filter((part) => part.kind !== without);
  return h("div", {}, h("h3", {}, shown(title)), h("div", { class: "side", tabindex: "0" }, kept.map((part, place) => {
    if (part.kind === "delete") return h("del", {}, shown(part.text));
    if (part.kind === "insert") return h("ins", {}, shown(part.text));
    return cut(part.text, place === 0, place === kept.length - 1);
  })));
}

function cut(text, first, last) {
  if (text.length <= LONG) return shown(text);
  const head = first ? "" : text.slice(0, EDGE);
  const tail = last ? "" : text.slice(-EDGE);
  const left = text.length - head.length - tail.length;
  return [shown(head), h("span", { class: "gap" }, ` … ${counted(left, "equal character")} … `), shown(tail)];
}
