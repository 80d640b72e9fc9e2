// Search: a text that is typed, pasted or dropped, and what is like it.

import { api, signsTexts } from "../api.js";
import { counted, during, fill, h, number, say, shown } from "../dom.js";
import { dropped } from "./drop.js";
import { matchList } from "./matches.js";
import { condition } from "./where.js";

/** What was typed, by collection, for those who come back from a document. */
const kept = new Map();

export async function searchView(place, { collection, name, link, signal }) {
  const before = kept.get(name) ?? { text: "", k: "10", radius: "", where: "" };
  const signs = signsTexts(collection);
  const text = h("textarea", { id: "text", spellcheck: "false", value: before.text, "aria-describedby": "hint",
    placeholder: signs ? "Paste a text, or drop a file here" : "A signature in hexadecimal digits" });
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
      fill(found, h("p", { class: "soft" }, "There is nothing to look for yet."));
      return void text.focus();
    }
    asked.abort();
    asked = new AbortController();
    signal.addEventListener("abort", () => asked.abort(), { once: true });
    const start = performance.now();
    const answer = await during(found, () => api.query(name, {
      ...(signs ? { text: now.text } : { signature: now.text.replace(/\s+/g, "") }),
      k: Number(now.k), include_text: true,
      ...(now.radius === "" ? {} : { radius: Number(now.radius) }),
      ...(now.where.trim() === "" ? {} : { where: condition(now.where) }),
    }, asked.signal));
    if (answer === undefined) return;
    const told = `${counted(answer.matches.length, "match", "matches")}${answer.exact ? ", none overlooked" : ""}${answer.masked ? ", by the bits that these few words decide" : ""}`;
    fill(found, h("p", { class: "soft" }, `${told} · ${Math.round(performance.now() - start)} ms`),
      answer.matches.length ? matchList(answer.matches, { name, link, bits: collection.bits, other: signs ? { text: now.text } : null, signal })
        : h("p", {}, "Nothing is that near. A larger radius, or none, finds more."));
    say(told);
  };
  const form = h("form", { class: "card drop", onsubmit: search },
    h("label", { class: "unseen", for: "text" }, "What to look for"), text,
    h("div", { class: "options" },
      h("label", {}, "Matches", k), h("label", {}, "Within (bits)", radius),
      h("label", { class: "grow" }, "Only where", where),
      h("div", { class: "buttons" }, h("button", { class: "main" }, "Search"))),
    h("p", { class: "soft", id: "hint" }, "Ctrl + Enter searches, / comes back here."));
  dropped(form, async (files) => {
    text.value = await files[0].slice(0, 1_000_000).text();
    search();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) search();
  });
  fill(place, h("h1", {}, "What is like this?"),
    h("p", { class: "soft" }, `${shown(name)}: ${counted(collection.documents, "document")}, signatures of ${number(collection.bits)} bits`),
    form, found);
  if (before.text) await search();
  else text.focus({ preventScroll: true });
}
