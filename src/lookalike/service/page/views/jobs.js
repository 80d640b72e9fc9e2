// A background job: its progress and its results.

import { api } from "../api.js";
import { counted, fill, h, problem, say, shown } from "../dom.js";

const TITLES = { pairs: "Finding pairs", dedup: "Finding near-duplicates", import: "Adding documents" };
const ROWS = 200;

/** A card that follows a job; `ended(job)` is called at its end. */
export function jobCard(job, { signal }, ended = () => {}) {
  const bar = h("progress", { max: 1, "aria-label": "Progress of the job" });
  const text = h("p", { class: "soft" });
  const stop = h("button", { type: "button", onclick: () => api.cancel(job.id).catch(() => {}) }, "Cancel");
  const card = h("div", { class: "card" }, h("b", {}, TITLES[job.kind] ?? shown(job.kind)), bar, text, stop);
  const draw = (now) => {
    if (now.progress !== null && now.progress !== undefined) bar.value = now.progress;
    text.textContent = shown(now.step ?? now.state);
  };
  const follow = async () => {
    let now = job;
    for (let wait = 150; now.state === "running" || now.state === "waiting"; wait = Math.min(1000, 1.3 * wait)) {
      draw(now);
      await new Promise((resolve) => setTimeout(resolve, wait));
      signal.throwIfAborted();
      now = await api.job(job.id, signal);
    }
    bar.remove();
    stop.remove();
    if (now.state === "failed") fill(card, problem({ title: "The job failed", message: now.error?.message ?? String(now.error ?? "") }));
    else {
      text.textContent = now.state === "canceled" ? "Canceled." : told(now.summary);
      say(text.textContent);
      card.append(...(now.summary?.warnings ?? []).map((one) => h("p", {}, shown(one))));
      if (now.state === "done" && job.kind !== "import") card.append(await results(now));
    }
    ended(now);
  };
  follow().catch((error) => { if (error.name !== "AbortError") fill(card, problem(error)); });
  return card;
}

function told(summary) {
  return Object.entries(summary ?? {}).filter(([, value]) => typeof value === "number")
    .map(([key, value]) => `${value.toLocaleString("en")} ${shown(key.replaceAll("_", " "))}`).join(" · ") || "Done.";
}

async function results(job) {
  const { results: rows, next } = await api.results(job.id, ROWS);
  if (!rows.length) return h("p", {}, "No results.");
  const heads = Object.keys(rows[0]);
  return h("details", {}, h("summary", {}, `Results${next === null ? "" : `, the first ${counted(rows.length, "row")}`}`), h("div", { class: "wide" }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, shown(one))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, heads.map((one) => h("td", { class: typeof row[one] === "number" ? "number" : "id" }, shown(row[one] ?? ""))))))))) ;
}
