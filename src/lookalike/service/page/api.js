// Requests to the service that this page is from, and what its errors become.

const KEY = "lookalike-key";

/** What went wrong, in the words of the service. */
export class ServiceError extends Error {
  constructor(status, title, message) {
    super(message);
    this.status = status;
    this.title = title;
  }
}

function key() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}

/** Keep a key for as long as this tab is open; null forgets it. */
export function keep(text) {
  if (text === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, text);
}

export function headers(more = {}) {
  const own = key();
  return own === null ? more : { ...more, Authorization: `Bearer ${own}` };
}

/** Ask, and return the answer; `signal` lets it be abandoned. */
export async function ask(method, path, body, signal) {
  const given = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(path, {
      method, signal, headers: headers({ Accept: "application/json", ...given }), credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service does not answer", "Is it still running? Then try again.");
  }
  const text = await response.text();
  let value = null;
  try { value = text === "" ? null : JSON.parse(text); } catch { /* no JSON: said below */ }
  if (!response.ok) throw problemOf(response.status, value);
  return value;
}

export function problemOf(status, value) {
  const told = value?.error ?? value ?? {};
  const titles = { 401: "A key is needed", 403: "This key may not do that", 404: "There is no such thing", 408: "That takes too long", 413: "That is too large", 429: "The service is busy", 503: "The service is not ready" };
  return new ServiceError(status, titles[status] ?? "That did not work", told.message ?? `The service answered ${status}.`);
}

/** Ask for what takes the service a while, again until it is there: it waits itself, and ends what nobody waits for. */
async function computed(path, signal) {
  for (;;) {
    const value = await ask("GET", path, undefined, signal);
    if (value?.state !== "computing") return value;
    await new Promise((resolve) => setTimeout(resolve, 200));
    signal?.throwIfAborted();
  }
}

const part = encodeURIComponent;
const at = (collection, rest = "") => `/v1/collections/${part(collection)}${rest}`;

/** A document; not by its own address, of which browsers make another one if the id is "..". */
async function document(name, id, signal) {
  const [found] = (await ask("POST", at(name, "/documents/get"), { ids: [id] }, signal)).documents;
  if (found === null) throw new ServiceError(404, "There is no such document", `${id} is not in ${name}, or no longer.`);
  return found;
}

export const api = {
  collections: () => ask("GET", "/v1/collections"),
  describe: (name) => ask("GET", at(name)),
  query: (name, body, signal) => ask("POST", at(name, "/query"), body, signal),
  document,
  count: (name, where, signal) => ask("POST", at(name, "/documents/count"), { where }, signal),
  compare: (name, left, right) => ask("POST", at(name, "/compare"), { left, right }),
  groups: (name, options, signal) => computed(`${at(name, "/groups")}?${new URLSearchParams(options)}`, signal),
  map: (name, signal) => computed(at(name, "/map"), signal),
  distances: (name, signal) => computed(at(name, "/distances"), signal),
  snapshots: (name) => ask("GET", at(name, "/snapshots")),
  snapshot: (name) => ask("POST", at(name, "/snapshots")),
  jobs: () => ask("GET", "/v1/jobs"),
  job: (id, signal) => ask("GET", `/v1/jobs/${part(id)}`, undefined, signal),
  results: (id, limit) => ask("GET", `/v1/jobs/${part(id)}/results?limit=${limit}`),
  cancel: (id) => ask("DELETE", `/v1/jobs/${part(id)}`),
  dedup: (name, body) => ask("POST", at(name, "/dedup"), body),
  upload: (name, format, file, heard) => send(`${at(name, "/upload")}?format=${part(format)}`, file, heard),
  scroll: (name, body, signal) => ask("POST", at(name, "/documents/scroll"), body, signal),
};

/** Send a file; `heard(sent, all)` is told how far it is. Fetch cannot tell that: the older way can. */
export function send(path, file, heard, type = "application/octet-stream") {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.open("POST", path);
    request.responseType = "text";
    for (const [name, value] of Object.entries(headers({ "Content-Type": type, Accept: "application/json" }))) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => heard(event.loaded, event.total);
    request.onerror = () => reject(new ServiceError(0, "The upload was cut off", "Nothing more was sent; what had arrived may have been added."));
    request.onabort = () => reject(new DOMException("stopped", "AbortError"));
    request.onload = () => {
      let value = null;
      try { value = JSON.parse(request.responseText); } catch { /* no JSON: said below */ }
      if (request.status >= 200 && request.status < 300) resolve(value);
      else reject(problemOf(request.status, value));
    };
    request.send(file);
  });
  return { done, stop: () => request.abort() };
}

/** Whether the collection signs texts: its items are not images, vectors or signatures. */
export const signsTexts = (collection) => collection.measure !== null;

/** Whether documents have words to be compared: the texts of images are their paths. */
export const hasWords = (collection) => collection.keeps_text && collection.signer?.signer !== "ImageHash";

/** What the percentages of a collection's matches are. */
export function similarityName(collection) {
  if (collection.measure) return `${measure(collection.measure)}, estimated from signatures`;
  if (collection.signer === null) return "share of equal bits";
  return collection.signer.signer === "Projection" ? "cosine similarity of vectors, estimated from signatures" : "similarity estimated from the bits that differ";
}

/** The name of a measure: what is compared, and how. */
export function measure({ measure: name, unit, weights }) {
  const weighted = weights && weights !== "count" ? ` (${weights} weights)` : "";
  return `${name === "jaccard" ? "Jaccard" : "cosine"} similarity of ${unit}${weighted}`;
}
