// The largest groups of near-duplicates; each document is compared with the first of its group.

import { api, hasWords, similarityName } from "../api.js";
import { counted, during, fill, h, number, percent, say, shown } from "../dom.js";
import { diff } from "./diff.js";
import { jobCard } from "./jobs.js";
import { noun, preview } from "./preview.js";

const FIRST = 8;
const MOST = 50;

export async function groupsView(place, context) {
  const { collection, name, signal } = context;
  const usual = Math.floor(collection.bits / 14);
  const radius = h("input", { type: "number", min: 0, max: collection.bits, value: usual, required: true });
  const found = h("div");
  const jobs = h("div");
  let asked = new AbortController();
  const look = async (event) => {
    event?.preventDefault();
    asked.abort(); // an old answer must not replace the new one
    asked = new AbortController();
    signal.addEventListener("abort", () => asked.abort(), { once: true });
    const told = await during(found, () => api.groups(name, { radius: radius.value, most: MOST, members: 100 }, asked.signal));
    if (told === undefined) return;
    const few = told.groups.length < MOST, documents = told.groups.reduce((sum, group) => sum + group.size, 0);
    const text = `${few ? counted(told.groups.length, "group") : `The ${MOST} largest groups`} with ${counted(documents, "document")} in all.`;
    fill(found, told.groups.length ? [h("p", { class: "soft told" }, text), told.groups.map((group, place) => groupCard(group, place, context))]
      : h("p", {}, "No near-duplicates at this radius. A larger radius may find some."));
    say(text);
  };
  const remove = async () => {
    const job = await during(jobs, () => api.dedup(name, { radius: Number(radius.value) }));
    if (job) fill(jobs, jobCard(job, context));
  };
  fill(place, h("h1", {}, "Near-duplicates"),
    h("p", { class: "soft" }, "Groups of documents with similar signatures, the largest first. Every document is within the radius of the first document of its group; two others may be up to twice the radius apart. ", `Percentages: ${similarityName(collection)}.`),
    h("form", { class: "card", onsubmit: look }, h("div", { class: "options" },
      h("label", {}, "Radius (bits)", radius),
      h("div", { class: "buttons" }, h("button", { type: "button", onclick: remove }, "Find all near-duplicates"), h("button", { class: "main" }, "Show groups")))),
    jobs, found);
  await look();
}

function groupCard(group, place, { collection, name, link, signal }) {
  const compared = hasWords(collection);
  const pictures = new Map(); // places for the previews of members, by id
  const room = (id) => {
    if (noun(collection) === null) return null;
    if (!pictures.has(id)) pictures.set(id, h("div"));
    return pictures.get(id);
  };
  const [first] = group.members;
  const rest = group.members.slice(1);
  const list = h("ul", { class: "matches" });
  const more = h("button", { type: "button", class: "link" });
  const show = (most) => {
    fill(list, rest.slice(0, most).map((one) => member(one, first, { compared, name, link, room })));
    draw(name, new Map([...pictures].filter(([, where]) => !where.hasChildNodes())), signal);
    more.hidden = most >= rest.length;
    more.textContent = `Show ${number(rest.length - most)} more`;
  };
  more.addEventListener("click", () => show(rest.length));
  const leader = room(first.id);
  show(FIRST);
  const unseen = group.size - group.members.length;
  return h("section", { class: "card", "aria-label": `Group ${place + 1}` },
    h("h2", {}, counted(group.size, "document")),
    h("p", { class: "soft" }, group.largest_distance === 0 ? "All documents have the same signature." : `At least ${percent(group.least_similarity)} similar to the first document.`),
    group.largest_distance === 0 ? null : h("details", {}, h("summary", {}, "Details"), h("p", { class: "soft" }, `Their signatures differ from the first in up to ${counted(group.largest_distance, "bit")}.`)),
    h("p", {}, h("a", { class: "id", href: link(name, "document", first.id) }, shown(first.id)), " ", h("span", { class: "soft" }, "(first document)")), leader,
    list, more, unseen > 0 ? h("p", { class: "soft" }, `${counted(unseen, "more document")} not shown.`) : null);
}

/** Show the previews of documents, which are in their metadata. */
async function draw(name, pictures, signal) {
  if (!pictures.size) return;
  try {
    const { documents } = await api.documents(name, [...pictures.keys()], signal);
    for (const one of documents) {
      const shown = one && preview(one.metadata?.preview, one.id);
      if (shown) fill(pictures.get(one.id), shown);
    }
  } catch { /* the ids are enough */ }
}

function member(one, first, { compared, name, link, room }) {
  const place = h("div");
  const opener = h("button", { type: "button", class: "link", "aria-expanded": "false" }, "Differences");
  opener.addEventListener("click", async () => {
    const open = opener.getAttribute("aria-expanded") === "false";
    opener.setAttribute("aria-expanded", String(open));
    if (!open) return void fill(place);
    const told = await during(place, () => api.compare(name, { id: first.id }, { id: one.id }));
    if (told) fill(place, diff(told, first.id, one.id));
  });
  return h("li", {}, h("a", { class: "id", href: link(name, "document", one.id) }, shown(one.id)), " ",
    h("span", { class: "soft" }, one.distance === 0 ? "same signature" : percent(one.similarity)), " ", compared ? opener : null, room(one.id), place);
}
