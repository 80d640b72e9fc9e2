// Two texts side by side, with different words marked; long equal passages are shortened.

import { measure } from "../api.js";
import { counted, h, number, percent, shown } from "../dom.js";

const LONG = 600;
const EDGE = 220;

/** `told`: the service's comparison of two texts. */
export function diff(told, left, right) {
  const parts = told.diff?.parts ?? [];
  return h("div", {},
    summary(told),
    told.equal ? null : h("div", { class: "sides" },
      side(left, parts, "insert"), side(right, parts, "delete")),
    !told.equal && told.diff?.complete && parts.every((part) => part.kind === "equal") ? h("p", { class: "soft" }, "All words are the same, in the same order. Only the white space differs.") : null,
    told.diff && !told.diff.complete ? h("p", { class: "soft" }, "The texts are too long or too different: the rest was not compared word by word.") : null);
}

/** One line per measure: first that of the collection's signatures, then those of word n-grams. */
function summary(told) {
  if (told.equal) return h("p", { class: "soft" }, "The texts are identical.");
  const own = told.signer, sets = told.methods?.find((one) => one.measure === "jaccard"), within = told.containment;
  const lines = [
    own && own.exact === null ? `${measure(own)}: not defined, because a text has no ${own.unit}.` : own ? `${measure(own)}: ${percent(own.exact)} exact, ${percent(own.estimate)} estimated from signatures (${own.distance} of ${number(own.bits)} bits differ).` : null,
    sets ? `${measure(sets)}: ${sets.estimate === null ? `not defined, because a text has no ${sets.unit}` : `${percent(sets.exact)} exact`}.` : null,
    within && sets?.estimate !== null ? `Containment of ${within.unit}: ${percent(within.exact)} of those in the smaller text also occur in the other.` : null,
    told.words ? `Words: ${number(told.words[0])} in the first text, ${number(told.words[1])} in the second.` : null,
  ];
  return h("ul", { class: "soft measures" }, lines.filter(Boolean).map((line) => h("li", {}, line[0].toUpperCase() + line.slice(1))));
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
