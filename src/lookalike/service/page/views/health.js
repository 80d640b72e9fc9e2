// Health: how many, how far apart, and in which state the index is.

import { api } from "../api.js";
import { counted, during, fill, h, number, percent, shown, size, svg } from "../dom.js";

export async function healthView(place, { name, signal }) {
  const told = await api.describe(name);
  const chart = h("div");
  const { index } = told;
  const lag = index.lag === null ? "built at the first search" : index.lag === 0 ? "up to date" : `${counted(index.lag, "version")} behind; the next search catches up`;
  const tile = (value, text) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, text));
  fill(place, h("h1", {}, "Health"),
    h("div", { class: "tiles" },
      tile(number(told.documents), told.documents === 1 ? "document" : "documents"),
      tile(number(told.signatures), "different signatures"),
      tile(told.documents ? percent(1 - told.signatures / told.documents) : "–", "share a signature with another"),
      tile(number(told.bits), "bits a signature"),
      tile(number(told.version), "version")),
    h("div", { class: "card" }, h("h2", {}, "Index"), h("dl", { class: "facts" },
      h("dt", {}, "Kind"), h("dd", {}, `${index.kind}, ${counted(index.slices, "slice")} of ${index.slice_bits} bits`),
      h("dt", {}, "State"), h("dd", {}, lag),
      h("dt", {}, "Memory"), h("dd", {}, index.bytes ? size(index.bytes) : "none yet"),
      h("dt", {}, "Signer"), h("dd", {}, told.signer ? shown(told.signer.signer ?? JSON.stringify(told.signer)) : "signatures are given"),
      h("dt", {}, "Texts"), h("dd", {}, told.keeps_text ? "kept" : "not kept"),
      h("dt", {}, "Durability"), h("dd", {}, shown(told.durability ?? "")))),
    h("div", { class: "card" }, h("h2", {}, "How far apart are they?"), chart));
  const far = await during(chart, () => api.distances(name, signal));
  if (far) fill(chart, distances(far, told.bits));
}

function distances(told, bits) {
  if (!told.nearest.some(Boolean)) return h("p", { class: "soft" }, "There are too few documents to say.");
  return [
    histogram(told.nearest, bits, "near", "Distance to the nearest other signature"),
    histogram(told.random_pairs, bits, "", "Distance of two that were chosen at random"),
    h("p", { class: "soft" }, "Where the two lie apart, a radius between them separates near-duplicates from strangers."),
  ];
}

function histogram(counts, bits, kind, title) {
  const most = Math.min(64, bits + 1), step = Math.ceil((bits + 1) / most);
  const bars = [];
  for (let from = 0; from <= bits; from += step) bars.push(counts.slice(from, from + step).reduce((sum, one) => sum + one, 0));
  const all = bars.reduce((sum, one) => sum + one, 0) || 1, high = Math.max(...bars) || 1;
  const [width, height, base] = [640, 130, 108], wide = width / bars.length;
  return h("figure", {}, h("figcaption", { class: "soft" }, title), svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: most are ${step * bars.indexOf(high)} to ${step * (bars.indexOf(high) + 1) - 1} bits apart` },
    svg("line", { x1: 0, x2: width, y1: base, y2: base }),
    bars.map((count, place) => count ? svg("rect", { class: kind || null, x: place * wide + 0.5, width: Math.max(1, wide - 1), y: base - (base - 8) * count / high, height: (base - 8) * count / high }, svg("title", {}, `${step * place} to ${Math.min(bits, step * (place + 1) - 1)} bits: ${number(count)} (${percent(count / all)})`)) : null),
    [0, 0.25, 0.5, 0.75, 1].map((share) => svg("text", { x: Math.min(width - 14, Math.max(8, share * width)), y: height - 6 }, Math.round(share * bits)))));
}
