// What shows an image, a recording or a video: a small picture, a waveform or a time line, and the stretch that matches.

import { counted, h, shown, svg } from "../dom.js";
import { isPicture } from "./picture.js";

const LONGEST = 4_000; // characters of a waveform
const NOUNS = { images: "image", recordings: "recording", videos: "video" };

/** The noun for an item of a collection of files; null for texts, vectors and signatures. */
export const noun = (collection) => ["text", "vector", null].includes(collection.medium) ? null : NOUNS[collection.medium] ?? "file";

/** 75.3 as 1:15.3. */
export function clock(seconds) {
  const tenths = Math.round(10 * seconds);
  return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
}

/** A preview, which is untrusted like all metadata. `stretch`: the seconds that match, `[from, to]`; null for none. */
export function preview(told, id, stretch = null) {
  if (told === null || typeof told !== "object") return null;
  const seconds = Number.isFinite(told.seconds) && told.seconds > 0 ? told.seconds : null;
  const peaks = bytes(told.waveform);
  const shows = [];
  if (isPicture(told.picture)) shows.push(h("img", { class: "picture", src: told.picture, alt: `Preview of ${shown(id)}`, loading: "lazy" }));
  if (seconds !== null && peaks.length) shows.push(waveform(peaks, seconds, stretch));
  else if (seconds !== null) shows.push(timeline(seconds, stretch));
  const facts = [
    Number.isInteger(told.width) && Number.isInteger(told.height) ? `${told.width} × ${told.height}` : null,
    seconds === null ? null : clock(seconds), typeof told.format === "string" ? shown(told.format.slice(0, 40)) : null,
  ].filter((one) => one !== null);
  if (!shows.length && !facts.length) return null;
  return h("figure", { class: "preview" }, shows, facts.length ? h("figcaption", { class: "soft" }, facts.join(" · ")) : null);
}

/** Where a match is, in words. */
export function placeText({ unit, start, query_start: asked, length }, mine) {
  if (unit === "seconds") return `${length.toFixed(1)} s match, from ${clock(start)} on; in ${mine} from ${clock(asked)} on.`;
  if (unit === "words") return `${counted(length, "word")} match, from word ${start + 1} on; in ${mine} from word ${asked + 1} on.`;
  return `A stretch of ${length} matches, from position ${start} on; in ${mine} from ${asked} on.`;
}

/** The seconds of a document, or of the query, that match. */
export function stretchOf(place, side = "start") {
  return place?.unit === "seconds" ? [place[side], place[side] + place.length] : null;
}

function bytes(text) {
  if (typeof text !== "string" || text.length > LONGEST) return [];
  try { return [...atob(text)].map((one) => one.charCodeAt(0)); } catch { return []; }
}

function said(what, seconds, stretch) {
  return `${what} of ${clock(seconds)}${stretch === null ? "" : `; ${clock(stretch[0])} to ${clock(stretch[1])} match`}`;
}

function waveform(peaks, seconds, stretch) {
  const high = 40, each = seconds / peaks.length;
  const inside = (place) => stretch !== null && (place + 1) * each > stretch[0] && place * each < stretch[1];
  return svg("svg", { class: "wave", viewBox: `0 0 ${peaks.length} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": said("Waveform", seconds, stretch) },
    peaks.map((peak, place) => {
      const tall = Math.max(1, high * peak / 255);
      return svg("rect", { class: inside(place) ? "hit" : null, x: place, width: 0.7, y: (high - tall) / 2, height: tall });
    }));
}

function timeline(seconds, stretch) {
  const at = (second) => 1000 * Math.max(0, Math.min(1, second / seconds));
  const hit = stretch === null ? null : svg("rect", { class: "hit", x: Math.min(994, at(stretch[0])), width: Math.max(6, at(stretch[1]) - at(stretch[0])), y: 0, height: 14 });
  return svg("svg", { class: "line", viewBox: "0 0 1000 14", preserveAspectRatio: "none", role: "img", "aria-label": said("Time line", seconds, stretch) },
    svg("rect", { x: 0, width: 1000, y: 0, height: 14 }), hit);
}
