/** Parts that several views show: headings, failures, waiting, paths, tags. */

import { h } from "./dom.js";
import { langOf, stateWords } from "./words.js";

/** What went wrong and what to do next. */
export function failure(error, again = null) {
  const retry = again && (error.status === 0 || error.status >= 500 || error.status === 429);
  return h("div.notice.bad.narrow.stack", { role: "alert" },
    h("h2", {}, heading(error)),
    h("p", {}, error.message),
    error.next && h("p", {}, error.next),
    retry && h("button", { type: "button", onclick: again }, "Try again"),
    error.correlation && h("p.small.quiet", {}, "For a report: ", h("code", {}, error.correlation)));
}

function heading(error) {
  if (error.status === 0) return "No answer";
  if (error.status === 403) return "Not for your role";
  if (error.status === 404) return "Not here";
  if (error.status === 429) return "Too many requests";
  if (error.status === 503) return "Away for the moment";
  if (error.status >= 500 || !error.status) return "Something broke";
  return "That did not work";
}

/** An inline message beside a form. */
export function notice(tone, ...lines) {
  return h(`div.notice.${tone}`, { role: tone === "bad" ? "alert" : "status" },
    lines.filter(Boolean).map((line) => h("p", {}, line)));
}

/** Grey places where content will stand. */
export function waiting(n = 3) {
  return h("div.waiting", { "aria-hidden": "true" }, Array.from({ length: n }, () => h("i")));
}

/** A view's heading, which takes the focus when the view opens. */
export function pageHeading(text, given = {}) {
  return h("h1", { tabindex: "-1", "data-focus": "", ...given }, text);
}

/** Headings above a passage; the title, which stands beside, is left out. */
export function headingPath(hit) {
  const path = hit.heading_path[0] === hit.title ? hit.heading_path.slice(1) : hit.heading_path;
  if (!path.length) return null;
  return h("ol.path", { lang: langOf(hit.language), "aria-label": "Headings" },
    path.map((step) => h("li", {}, step)));
}

export function stateTag(state) {
  const [words, tone] = stateWords(state);
  return h(`span.tag${tone ? `.${tone}` : ""}`, {}, words);
}

/** The address of a passage in its document. */
export function passageLink(hit) {
  return documentLink(hit.scope, hit.document_id, { v: hit.version, p: hit.passage_id });
}

/** The address of a document. */
export function documentLink(scope, id, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value != null && value !== "");
  const tail = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/d/${encodeURIComponent(scope)}/${encodeURIComponent(id)}${tail}`;
}
