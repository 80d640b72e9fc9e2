// One document: its text, its metadata and its neighbors.

import { api, hasWords, similarityName } from "../api.js";
import { during, fill, h, moment, shown, svg } from "../dom.js";
import { matchList, tags } from "./matches.js";
import { picture } from "./picture.js";
import { noun, preview } from "./preview.js";

export async function documentView(place, { collection, name, rest, link, signal }) {
  const id = rest.join("/");
  const document = await api.document(name, id, signal);
  const near = h("div");
  fill(place, h("h1", { class: "id" }, shown(document.id)),
    tags(document.metadata), preview(document.metadata?.preview, id), picture(document.metadata, id),
    document.text === null && noun(collection) ? null : document.text === null ? h("p", { class: "soft" }, collection.keeps_text ? "This document has no text." : "This collection does not store texts.") : h("div", { class: "card text", tabindex: "0" }, shown(document.text)),
    h("details", { class: "card" }, h("summary", {}, "Stored data"), h("dl", { class: "facts" },
      h("dt", {}, "Added"), h("dd", {}, moment(document.added)),
      h("dt", {}, "Updated"), h("dd", {}, moment(document.updated)),
      h("dt", {}, "Signature"), h("dd", {}, bits(document.signature), h("span", { class: "id" }, document.signature)))),
    h("h2", {}, "Neighbors"), near);
  const answer = await during(near, () => api.query(name, { id, k: 10, include_text: true }, signal));
  if (answer === undefined) return;
  fill(near, h("p", { class: "soft" }, answer.matches.length === 0 ? collection.parts ? "No other document matches." : "The collection has no other documents." : `The ${answer.matches.length === 1 ? "nearest other document" : `${answer.matches.length} nearest other documents`}${answer.exact ? "" : " (approximate: some may be missing)"}. Percentages: ${similarityName(collection)}.`),
    matchList(answer.matches, { name, link, bits: collection.bits, other: document.text === null || !hasWords(collection) ? null : { id }, mine: "this document", signal }));
}

/** The bits of a signature as a picture. */
function bits(hex) {
  const count = 4 * hex.length, across = 64;
  const marks = [];
  for (let place = 0; place < count && place < 4096; place++) {
    if (parseInt(hex[place >> 2], 16) & (8 >> (place & 3))) marks.push(svg("rect", { x: place % across, y: Math.floor(place / across), width: 0.86, height: 0.86 }));
  }
  return svg("svg", { class: "bits", viewBox: `0 0 ${across} ${Math.ceil(Math.min(count, 4096) / across)}`, role: "img", "aria-label": `${count} bits` }, marks);
}
