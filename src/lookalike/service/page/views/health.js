// Statistics: counts, distances and the state of the index.

import { api } from "../api.js";
import { counted, during, fill, h, number, percent, shown, size, svg } from "../dom.js";

export async function healthView(place, { collection, name, signal }) {
  const told = await api.describe(name);
  const chart = h("div"), sharing = h("b", {}, "…");
  const { index } = told;
  const lag = index.lag === null ? "not built yet; the first search builds it" : index.lag === 0 ? "up to date" : `${counted(index.lag, "version")} behind; the next search catches up`;
  const tile = (value, text) => h("div", { class: "tile" }, value instanceof Node ? value : h("b", {}, value), h("span", {}, text));
  fill(place, h("h1", {}, "Health"),
    h("div", { class: "tiles" },
      tile(number(told.documents), told.documents === 1 ? "document" : "documents"),
      tile(number(told.signatures), "distinct signatures"),
      collection.parts ? null : tile(sharing, "of documents have the same signature as another document"),
      tile(number(told.bits), collection.parts ? "bits per part" : "bits per signature"),
      tile(number(told.version), "version")),
    h("div", { class: "card" }, h("h2", {}, "Index"), h("dl", { class: "facts" },
      h("dt", {}, "Kind"), h("dd", {}, collection.parts ? index.kind : `${index.kind}, ${counted(index.slices, "slice")} of ${index.slice_bits} bits`),
      h("dt", {}, "State"), h("dd", {}, lag),
      h("dt", {}, "Memory"), h("dd", {}, index.bytes ? size(index.bytes) : "none yet"),
      h("dt", {}, "Signer"), h("dd", {}, told.signer ? shown(told.signer.signer ?? JSON.stringify(told.signer)) : "none; clients send signatures"),
      h("dt", {}, "Texts"), h("dd", {}, told.keeps_text ? "stored" : "not stored"),
      h("dt", {}, "Durability"), h("dd", {}, shown(told.durability ?? "")))),
    collection.parts ? null : h("div", { class: "card" }, h("h2", {}, "Distances between signatures"), chart));
  if (collection.parts) return;
  const far = await during(chart, () => api.distances(name, signal));
  if (!far) return void fill(sharing, "–");
  fill(sharing, told.documents ? percent(far.sharing / told.documents) : "–");
  fill(chart, distances(far, told));
}

function distances(told, { bits, signatures }) {
  if (!told.nearest.some(Boolean)) return h("p", { class: "soft" }, "There are no distances yet: the collection needs at least two distinct signatures.");
  const sum = (counts) => counts.reduce((all, one) => all + one, 0);
  const asked = sum(told.nearest), which = asked < signatures ? `${number(asked)} random signatures` : `all ${number(asked)} signatures`;
  return [
    histogram(told.nearest, bits, "near", `Distance to the nearest other signature, for ${which}`),
    histogram(told.random_pairs, bits, "", `Distance between two signatures, for ${number(sum(told.random_pairs))} random pairs`),
    h("p", { class: "soft" }, "If the two histograms hardly overlap, a radius between them separates near-duplicates from unrelated documents."),
  ];
}

function histogram(counts, bits, kind, title) {
  const most = Math.min(64, bits + 1), step = Math.ceil((bits + 1) / most);
  const bars = [];
  for (let from = 0; from <= bits; from += step) bars.push(counts.slice(from, from + step).reduce((sum, one) => sum + one, 0));
  const all = bars.reduce((sum, one) => sum + one, 0) || 1, high = Math.max(...bars) || 1;
  const span = (place) => step === 1 ? counted(place, "bit") : `${step * place} to ${Math.min(bits, step * (place + 1) - 1)} bits`;
  const [width, height, base] = [640, 130, 108], wide = width / bars.length;
  return h("figure", {}, h("figcaption", { class: "soft" }, title), svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: most often ${span(bars.indexOf(high))}` },
    svg("line", { x1: 0, x2: width, y1: base, y2: base }),
    bars.map((count, place) => count ? svg("rect", { class: kind || null, x: place * wide + 0.5, width: Math.max(1, wide - 1), y: base - (base - 8) * count / high, height: (base - 8) * count / high }, svg("title", {}, `${span(place)}: ${number(count)} (${percent(count / all)})`)) : null),
    [0, 0.25, 0.5, 0.75, 1].map((share) => svg("text", { x: Math.min(width - 20, Math.max(8, (Math.round(share * bits) + 0.5) / (step * bars.length) * width)), y: height - 6 }, number(Math.round(share * bits))))));
}
