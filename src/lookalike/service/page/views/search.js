// Search for the documents most similar to a text.

import { api, signsTexts, similarityName } from "../api.js";
import { beginning, counted, during, fill, h, number, say, shown } from "../dom.js";
import { dropped } from "./drop.js";
import { matchList } from "./matches.js";
import { condition } from "./where.js";

/** The last search of each collection, restored when the user comes back. */
const kept = new Map();

export async function searchView(place, { collection, name, link, signal }) {
  const before = kept.get(name) ?? { text: "", k: "10", radius: "", where: "" };
  const signs = signsTexts(collection);
  const text = h("textarea", { id: "text", spellcheck: "false", value: before.text, "aria-describedby": "hint",
    placeholder: signs ? "Type or paste a text, or drop a file, to find the most similar documents" : "Signature in hexadecimal digits" });
  const k = h("input", { type: "number", min: 1, max: 1000, value: before.k, required: true });
  const radius = h("input", { type: "number", min: 0, max: collection.bits, value: before.radius, placeholder: "any" });
  const where = h("input", { value: before.where, placeholder: 'lang = en, year >= 2020', spellcheck: "false" });
  const found = h("div");
  let asked = new AbortController();

  const search = async (event) => {
    event?.preventDefault();
    const now = { text: text.value, k: k.value, radius: radius.value, where: where.value };
    kept.set(name, now);
    if (!now.text.trim()) {
      fill(found, h("p", { class: "soft" }, "Enter a text first."));
      return void text.focus();
    }
    asked.abort();
    asked = new AbortController();
    signal.addEventListener("abort", () => asked.abort(), { once: true });
    const start = performance.now();
    let given; // the filter as the service takes it
    const answer = await during(found, () => api.query(name, {
      ...(signs ? { text: now.text } : { signature: now.text.replace(/\s+/g, "") }),
      k: Number(now.k), include_text: true,
      ...(now.radius === "" ? {} : { radius: Number(now.radius) }),
      ...(now.where.trim() === "" ? {} : { where: given = condition(now.where) }),
    }, asked.signal));
    if (answer === undefined) return;
    const passed = Math.round(performance.now() - start), count = answer.matches.length;
    // Documents that were chosen by a filter are listed however far away they are.
    const none = Boolean(answer.no_match) && (given === undefined || !count);
    const told = none ? sentence(answer.no_match) : count ? which(count, now, answer) : await during(found, () => nothing(name, now, given, asked.signal, collection.parts));
    if (told === undefined) return;
    const list = count ? [
      h("p", { class: "soft" }, answer.by === "words" ? `Percentages: the share of your words that a document has; rare words count more.${unknown(answer)}`
        : `Percentages: ${similarityName(collection)}.${answer.masked ? " Your text is short, so matches are ranked only by the bits that its words determine." : ""}`),
      matchList(answer.matches, { name, link, bits: collection.bits, other: signs ? { text: now.text } : null, signal }),
    ] : null;
    fill(found, none || !count ? h("p", { class: "told" }, told) : h("p", { class: "soft" }, `${told} · ${passed} ms`),
      answer.no_match && !none ? h("p", {}, sentence(answer.no_match)) : null,
      list && none ? h("details", {}, h("summary", {}, "Show the nearest documents anyway"), list) : list);
    say(told);
  };
  const form = h("form", { class: "card drop", onsubmit: search },
    h("label", { class: "unseen", for: "text" }, "Text to search for"), text,
    h("div", { class: "options" },
      h("label", {}, "Results", k), collection.parts ? null : h("label", {}, "Radius (bits)", radius),
      h("label", { class: "grow" }, "Filter by metadata", where),
      h("div", { class: "buttons" }, h("button", { class: "main" }, "Search"))),
    h("p", { class: "soft", id: "hint" }, "Press Ctrl + Enter to search, / to edit the text. Filters: lang = en, year >= 2020, suite in (a, b), tags has news; join filters with a comma or “and”."));
  dropped(form, async (files) => {
    text.value = await files[0].slice(0, 1_000_000).text();
    search();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) search();
  });
  fill(place, h("h1", {}, "Search"),
    h("p", { class: "soft" }, `${shown(name)}: ${counted(collection.documents, "document")}`),
    form, found);
  if (before.text) await search();
  else text.focus({ preventScroll: true });
}

/** A description of the matches. */
function which(count, { k, radius, where }, answer) {
  const of = `${radius === "" ? "" : ` within ${counted(Number(radius), "bit")}`}${where.trim() === "" ? "" : `${radius === "" ? "" : ","} that match the filter`}`;
  const best = answer.by === "words" ? "best" : "nearest";
  const found = answer.left_out !== undefined ? counted(count, "document") + " with the same passages" : count < Number(k) ? `All ${counted(count, "document")}${answer.by === "words" ? " with your words" : ""}${of}` : `The ${count === 1 ? `${best} document` : `${number(count)} ${best} documents`}${of}`;
  return `${found}${answer.exact ? "" : " (approximate: some may be missing)"}`;
}

/** The words that no document has. */
function unknown(answer) {
  return answer.unknown.length ? ` No document has: ${answer.unknown.map(shown).join(", ")}.` : "";
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

/** Why there are no matches: the filter, the radius, or no documents. */
async function nothing(name, { radius }, where, signal, parts) {
  const far = radius === "" ? "" : counted(Number(radius), "bit");
  if (parts) return "No document has passages of your text. A text needs about as many words as a passage and a step have.";
  if (where === undefined) return far ? `No document is within ${far}. Try a larger radius, or none.` : "The collection has no documents.";
  const { count } = await api.count(name, where, signal);
  if (count) return `${counted(count, "document")} match${count === 1 ? "es" : ""} the filter, but none is within ${far} of your text. Try a larger radius, or none.`;
  const { documents } = await api.scroll(name, { limit: 100, include_text: false }, signal);
  const fields = new Map();
  for (const one of documents) for (const [field, value] of Object.entries(one.metadata)) if (!fields.has(field) && JSON.stringify(value).length < 80) fields.set(field, value);
  const known = [...fields].slice(0, 8).map(([field, value]) => `${shown(field)} = ${beginning(JSON.stringify(value), 40)}`).join(", ");
  return `No document matches the filter. ${known ? `Examples of metadata: ${known}. Filters are case-sensitive.` : "The documents have no metadata to filter by."}`;
}
