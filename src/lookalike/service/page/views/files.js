// Search for an image, a recording or a video, and add such files.

import { api, similarityName } from "../api.js";
import { counted, fill, h, problem, say, shown, size } from "../dom.js";
import { dropped } from "./drop.js";
import { matchList } from "./matches.js";
import { noun, preview, stretchOf } from "./preview.js";
import { condition } from "./where.js";

const ACCEPTED = { images: "image/*", recordings: "audio/*", videos: "video/*" };

/** The last search of each collection, restored when the user comes back. */
const kept = new Map();

export async function fileSearchView(place, { collection, name, link, signal }) {
  const what = noun(collection);
  const before = kept.get(name) ?? { file: null, k: "10", where: "" };
  const file = h("input", { type: "file", id: "file", accept: ACCEPTED[collection.medium] });
  const k = h("input", { type: "number", min: 1, max: 1000, value: before.k, required: true });
  const where = h("input", { value: before.where, placeholder: "lang = en, year >= 2020", spellcheck: "false" });
  const found = h("div");
  let asked = null, chosen = before.file;

  const search = async (event) => {
    event?.preventDefault();
    if (chosen === null) return void fill(found, h("p", { class: "soft" }, `Choose ${article(what)} first.`));
    kept.set(name, { file: chosen, k: k.value, where: where.value });
    asked?.stop();
    const start = performance.now(), mine = chosen;
    const bar = h("progress", { max: mine.size || 1, value: 0, "aria-label": "Progress of the upload" });
    const text = h("p", { class: "soft" }, `${shown(mine.name)}: ${size(mine.size)}`);
    fill(found, h("div", { class: "card" }, text, bar));
    try {
      const options = { k: Number(k.value), ...(where.value.trim() === "" ? {} : { where: JSON.stringify(condition(where.value)) }) };
      asked = api.queryFile(name, mine, options, (sent, all) => {
        bar.value = sent;
        if (sent === all) text.textContent = `${shown(mine.name)}: searching …`;
      });
      signal.addEventListener("abort", asked.stop, { once: true });
      const answer = await asked.done;
      const count = answer.matches.length, passed = Math.round(performance.now() - start);
      const told = !count ? nothing(collection, what, where.value) : collection.parts ? counted(count, "match", "matches") : `The ${counted(count, `nearest ${what}`)}`;
      fill(found,
        h("div", { class: "card" }, h("h2", {}, shown(mine.name)), preview(answer.query, mine.name, stretchOf(answer.matches[0]?.place, "query_start"))),
        h("p", { class: "soft told" }, count ? `${told} · ${passed} ms. Percentages: ${similarityName(collection)}.` : told),
        answer.no_match ? h("p", {}, `${answer.no_match[0].toUpperCase()}${answer.no_match.slice(1)}.`) : null,
        matchList(answer.matches, { name, link, bits: collection.bits, other: null, mine: `your ${what}`, signal }));
      say(told);
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(found, problem(error));
      say(error.message);
    }
  };
  const take = (files) => {
    chosen = files[0] ?? null;
    if (chosen !== null) search();
  };
  file.addEventListener("change", () => take(file.files));
  const form = h("form", { class: "card drop", onsubmit: search },
    h("div", { class: "options" },
      h("label", { class: "grow", for: "file" }, `${what[0].toUpperCase()}${what.slice(1)} to search for`, file),
      h("label", {}, "Results", k), h("label", { class: "grow" }, "Filter by metadata", where),
      h("div", { class: "buttons" }, h("button", { class: "main" }, "Search"))),
    h("p", { class: "soft" }, `Choose a file, or drop it here. ${collection.parts ? "A few seconds are enough: the answer says where they are." : "Copies of other sizes and formats are found."} The service does not store it.`));
  dropped(form, take);
  fill(place, h("h1", {}, "Search"), h("p", { class: "soft" }, `${shown(name)}: ${counted(collection.documents, what)}`), form, found);
  if (chosen !== null) await search();
}

function nothing(collection, what, where) {
  if (collection.documents === 0) return `The collection has no ${what}s yet: add some with Upload.`;
  return where.trim() === "" ? `No ${what} of the collection matches.` : `No ${what} that meets the filter matches.`;
}

function article(what) {
  return `${"aeiou".includes(what[0]) ? "an" : "a"} ${what}`;
}

export async function fileUploadView(place, { collection, name, link, signal }) {
  const what = noun(collection);
  const file = h("input", { type: "file", id: "file", multiple: true, required: true, accept: ACCEPTED[collection.medium] });
  const list = h("ul", { class: "matches" });
  let last = Promise.resolve(); // one after the other: the service decodes a few at once

  const add = (given) => {
    const bar = h("progress", { max: given.size || 1, value: 0, "aria-label": `Progress of ${given.name}` });
    const state = h("p", { class: "soft" }, "waiting");
    const row = h("li", { class: "match" }, h("b", { class: "id" }, shown(given.name)), state, bar);
    list.append(row);
    last = last.then(async () => {
      if (signal.aborted) return;
      try {
        const sending = api.addFile(name, given.name, given, (sent, all) => {
          bar.value = sent;
          state.textContent = sent === all ? "decoding …" : `${size(sent)} of ${size(all)}`;
        });
        signal.addEventListener("abort", sending.stop, { once: true });
        const done = await sending.done;
        collection.documents += done.status === "added" ? 1 : 0;
        fill(row, h("a", { class: "id", href: link(name, "document", given.name) }, shown(given.name)), h("p", { class: "soft" }, done.status), preview(done.preview, given.name));
        say(`${given.name}: ${done.status}`);
      } catch (error) {
        bar.remove();
        fill(row, h("b", { class: "id" }, shown(given.name)), error.name === "AbortError" ? h("p", {}, "canceled") : problem(error));
      }
    });
  };
  const form = h("form", { class: "card drop", onsubmit: (event) => { event.preventDefault(); [...file.files].forEach(add); file.value = ""; } },
    h("div", { class: "options" }, h("label", { class: "grow", for: "file" }, `Files (${what}s)`, file),
      h("div", { class: "buttons" }, h("button", { class: "main" }, "Upload"))),
    h("p", { class: "soft" }, `The name of a file becomes the id of its document; a document with this id is replaced. The service keeps signatures and a small preview, not the file.`));
  dropped(form, (files) => [...files].forEach(add));
  fill(place, h("h1", {}, `Add ${what}s`), form, list);
}
