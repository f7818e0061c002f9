/** The HTTP API: one function for calls, one class for what goes wrong. */

let csrf = null;

/** The token that changes from a cookie session carry. */
export function useToken(token) {
  csrf = token;
}

/** A problem (RFC 9457), or that the server did not answer. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || "The server did not answer.");
    this.status = status;
    this.code = body.code || "";
    this.next = body.next_step || "";
    this.correlation = body.correlation_id || "";
  }
}

/**
 * One call.
 *
 * @param {string} path below the page's own address
 * @param {{method?: string, body?: any, query?: Record<string, any>, signal?: AbortSignal}} [given]
 *   `body` is sent as JSON, or as it is where it is a form
 * @throws {Problem}
 */
export async function call(path, { method = "GET", body, query, signal } = {}) {
  const url = new URL(path, document.baseURI);
  for (const [key, value] of Object.entries(query || {})) {
    if (value != null && value !== "") url.searchParams.set(key, value);
  }
  const headers = { Accept: "application/json" };
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  const form = body instanceof FormData;
  if (body !== undefined && !form) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(url, {
      method, headers, signal, credentials: "same-origin",
      body: body === undefined || form ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {
      detail: "The server did not answer.",
      next_step: "Look whether you are online, then try again.",
    });
  }
  if (answer.status === 204) return null;
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, found);
  return found;
}

/** A path of the API with its parts escaped. */
export function api(...parts) {
  return ["api/v1", ...parts.map(encodeURIComponent)].join("/");
}
