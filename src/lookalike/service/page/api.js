// Requests to the service that this page is from, and what its errors become.

const KEY = "lookalike-key";

/** An error, with the message of the service. */
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

/** Send a request, and return the answer; `signal` can abort it. */
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
    throw new ServiceError(0, "No response from the service", "Check that the service is running, then try again.");
  }
  const text = await response.text();
  let value = null;
  try { value = text === "" ? null : JSON.parse(text); } catch { /* no JSON: said below */ }
  if (!response.ok) throw problemOf(response.status, value);
  return value;
}

export function problemOf(status, value) {
  const told = value?.error ?? value ?? {};
  const titles = { 401: "API key required", 403: "Not allowed with this API key", 404: "Not found", 408: "Time limit exceeded", 413: "Too large", 415: "Wrong type of file", 429: "The service is busy", 503: "The service is not available" };
  return new ServiceError(status, titles[status] ?? "The request failed", told.message ?? `The service returned status ${status}.`);
}

/** Ask again until a slow result is computed. The service waits with each answer, and stops computing when no client asks. */
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

/** A document; not by its own URL, which browsers change if the id is "..". */
async function document(name, id, signal) {
  const [found] = (await ask("POST", at(name, "/documents/get"), { ids: [id] }, signal)).documents;
  if (found === null) throw new ServiceError(404, "Document not found", `${id} is not in ${name}, or was deleted.`);
  return found;
}

export const api = {
  collections: () => ask("GET", "/v1/collections"),
  describe: (name) => ask("GET", at(name)),
  query: (name, body, signal) => ask("POST", at(name, "/query"), body, signal),
  document,
  documents: (name, ids, signal) => ask("POST", at(name, "/documents/get"), { ids, include_text: false }, signal),
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
  queryFile: (name, file, options, heard) => send(`${at(name, "/query/file")}?${new URLSearchParams(options)}`, file, heard),
  addFile: (name, id, file, heard) => send(at(name, `/files/${part(id)}`), file, heard, "PUT"),
  scroll: (name, body, signal) => ask("POST", at(name, "/documents/scroll"), body, signal),
};

/** Send a file; `heard(sent, all)` gets the progress, which fetch does not report. */
export function send(path, file, heard, method = "POST") {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.open(method, path);
    request.responseType = "text";
    for (const [name, value] of Object.entries(headers({ "Content-Type": "application/octet-stream", Accept: "application/json" }))) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => heard(event.loaded, event.total);
    request.onerror = () => reject(new ServiceError(0, "The upload was interrupted", "The connection was lost. Check whether documents were added before you try again."));
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
export const signsTexts = (collection) => collection.medium === "text";

/** Whether documents have words to compare; the texts of files, such as images, are their paths. */
export const hasWords = (collection) => collection.keeps_text && ["text", "vector", null].includes(collection.medium);

/** What the percentages of a collection's matches are. */
export function similarityName(collection) {
  if (collection.parts) return "share of the parts of the query that match";
  if (collection.measure) return `${measure(collection.measure)}, estimated from signatures`;
  if (collection.medium === null) return "share of equal bits";
  return collection.medium === "vector" ? "cosine similarity of vectors, estimated from signatures" : "similarity, estimated from the bits that differ";
}

/** The name of a measure: what is compared, and how. */
export function measure({ measure: name, unit, weights }) {
  const weighted = weights && weights !== "count" ? ` (${weights} weights)` : "";
  return `${name === "jaccard" ? "Jaccard" : "cosine"} similarity of ${unit}${weighted}`;
}
