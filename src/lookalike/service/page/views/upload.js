// Upload a file with documents, and show the progress and the result.

import { api } from "../api.js";
import { fill, h, problem, say, shown, size } from "../dom.js";
import { dropped } from "./drop.js";
import { jobCard } from "./jobs.js";

const FORMATS = { jsonl: "JSON Lines", json: "JSON", csv: "CSV", tsv: "TSV", text: "text, one document per line" };
const ENDINGS = { jsonl: "jsonl", ndjson: "jsonl", json: "json", csv: "csv", tsv: "tsv", tab: "tsv", txt: "text", text: "text", md: "text" };

export async function uploadView(place, context) {
  const { name } = context;
  const format = h("select", {}, Object.entries(FORMATS).map(([key, text]) => h("option", { value: key }, text)));
  const file = h("input", { type: "file", id: "file", required: true, accept: ".jsonl,.ndjson,.json,.csv,.tsv,.tab,.txt,.text,.md" });
  const state = h("div");
  const guess = (given) => { format.value = ENDINGS[given.name.split(".").pop().toLowerCase()] ?? format.value; };
  file.addEventListener("change", () => file.files[0] && guess(file.files[0]));

  const upload = async (given) => {
    const bar = h("progress", { max: given.size || 1, value: 0, "aria-label": "Progress of the upload" });
    const text = h("p", { class: "soft" }, `${shown(given.name)}: 0 of ${size(given.size)}`);
    const sending = api.upload(name, format.value, given, (sent, all) => {
      bar.value = sent;
      text.textContent = `${shown(given.name)}: ${size(sent)} of ${size(all)}`;
    });
    fill(state, h("div", { class: "card" }, bar, text, h("button", { type: "button", onclick: () => sending.stop() }, "Cancel")));
    try {
      const job = await sending.done;
      say("Upload complete.");
      fill(state, jobCard(job, context, (ended) => { context.collection.documents += ended.summary?.added ?? 0; }));
    } catch (error) {
      fill(state, error.name === "AbortError" ? h("p", {}, "Upload canceled. No documents were added.") : problem(error));
    }
  };
  const form = h("form", { class: "card drop", onsubmit: (event) => { event.preventDefault(); upload(file.files[0]); } },
    h("div", { class: "options" },
      h("label", { class: "grow", for: "file" }, "File", file), h("label", {}, "Format", format),
      h("div", { class: "buttons" }, h("button", { class: "main" }, "Upload"))),
    h("p", { class: "soft" }, "Columns with ids and texts are detected by name; all other columns become metadata. Documents with existing ids are replaced."));
  dropped(form, (files) => { guess(files[0]); upload(files[0]); });
  fill(place, h("h1", {}, "Add documents"), form, state);
}
