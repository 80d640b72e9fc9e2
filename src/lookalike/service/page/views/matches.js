// A list of matches: similarity, metadata, the beginning of the text, and the words that differ.

import { api } from "../api.js";
import { beginning, counted, during, fill, h, number, percent, shown } from "../dom.js";
import { diff } from "./diff.js";
import { picture } from "./picture.js";
import { placeText, preview, stretchOf } from "./preview.js";

const AROUND = 120; // characters before and after a passage that matches

/** `other`: what the matches are compared with, `{ id }` or `{ text }`; null if it has no words. `mine`: what the query is called. */
export function matchList(matches, { name, link, bits, other, mine = "your text", signal }) {
  return h("ol", { class: "matches" }, matches.map((match) => row(match, { name, link, bits, other, mine, signal })));
}

/** The passage that matches, with what is around it; the beginning of the text if there is none. */
function excerpt({ text, place }) {
  if (!place?.characters) return beginning(text);
  const [from, to] = place.characters, letters = [...text]; // the service counts characters, not UTF-16 units
  const part = (begin, end) => letters.slice(Math.max(0, begin), end).join("");
  return [from > AROUND ? "…" : "", shown(part(from - AROUND, from)), h("mark", {}, beginning(part(from, to), 600)), beginning(part(to, to + AROUND), AROUND)];
}

function row(match, { name, link, bits, other, mine }) {
  const place = h("div");
  const here = link(name, "document", match.id);
  const opener = h("button", { type: "button", class: "link", "aria-expanded": "false" }, "Show differences");
  opener.addEventListener("click", async () => {
    const open = opener.getAttribute("aria-expanded") === "false";
    opener.setAttribute("aria-expanded", String(open));
    opener.textContent = open ? "Hide differences" : "Show differences";
    if (!open) return void fill(place);
    const told = await during(place, () => api.compare(name, other, { id: match.id }));
    if (told && opener.getAttribute("aria-expanded") === "true") fill(place, diff(told, other.id ?? "your text", match.id));
  });
  return h("li", { class: "match" },
    h("div", { class: "head" }, h("a", { class: "id", href: here }, shown(match.id)), likeness(match)),
    preview(match.metadata?.preview, match.id, stretchOf(match.place)), picture(match.metadata, match.id),
    match.place ? h("p", { class: "soft place" }, placeText(match.place, mine)) : null,
    match.text ? h("p", { class: match.place ? "passage" : "begin" }, excerpt(match)) : null,
    tags(match.metadata),
    h("div", { class: "actions" }, other && typeof match.text === "string" ? opener : null, h("a", { href: here }, "Neighbors"), details(match, bits)),
    place);
}

/** How good a match is, as a bar and a percentage, and why. */
function likeness(match) {
  if (match.words) return meter(match.score, `shares the words ${beginning(match.words.map(shown).join(", "), 60)}`, "Share of your words that the document has; rare words count more");
  const share = Math.max(0, Math.min(1, match.similarity));
  return match.place ? meter(share, counted(match.votes, "vote"), "Share of the parts of the query that match") : meter(share);
}

/** The bits that the percentage was estimated from, on demand; null if it was not. */
function details(match, bits) {
  if (match.words || match.place) return null;
  // The similarity is computed from all bits, even if only some of them rank the matches.
  const masked = match.unmasked !== undefined;
  const all = `${number(masked ? match.unmasked : match.distance)} of ${counted(bits, "bit")} differ`;
  return h("details", {}, h("summary", {}, "Details"),
    h("p", { class: "soft" }, `${all}${masked ? `, ${number(match.distance)} of those that rank the matches` : ""}.`));
}

/** A share from 0 to 1 as a bar and a percentage, and what it is made of. */
function meter(share, detail, title) {
  return h("div", { class: "likeness", title },
    h("div", { class: share >= 0.8 ? "bar near" : "bar", "aria-hidden": "true" }, h("i", { style: { width: `${100 * share}%` } })),
    h("span", {}, percent(share), detail ? h("span", { class: "soft" }, ` · ${detail}`) : null));
}

export function tags(metadata) {
  const entries = Object.entries(metadata ?? {}).filter(([key, value]) => key !== "preview" && !String(value).startsWith("data:image/")).slice(0, 12);
  if (!entries.length) return null;
  return h("ul", { class: "tags", "aria-label": "Metadata" }, entries.map(([key, value]) => {
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    return h("li", {}, h("b", {}, `${shown(key)} `), beginning(text, 80));
  }));
}
