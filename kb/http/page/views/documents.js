/** The documents of a scope, newest first. */

import { api, call } from "../api.js";
import { announce, fill, h, labelled, select } from "../dom.js";
import { documentLink, pageHeading, stateTag, waiting } from "../parts.js";
import { DOCUMENT_STATES, count, day, fileName, langOf, language, stateWords } from "../words.js";

export async function show(root, route, app, same) {
  app.title("Documents");
  const [scope] = route.parts;
  const q = route.query.get("q") || "";
  const state = route.query.get("state") || "";
  if (!same) draw(root, scope, app);
  const { field, states, list } = root.firstElementChild.parts;
  if (document.activeElement !== field) field.value = q;
  states.value = state;
  fill(list, waiting());
  const found = await page(scope, q, state);
  fill(list, found.items.length ? rows(found, scope, q, state) : none(q, state, scope, app));
  announce(`${count(found.items.length, "document")}${found.next_cursor ? ", and more" : ""}.`);
}

function page(scope, q, state, cursor) {
  return call(api("documents"), { query: { scope, q, state, cursor, limit: 50 } });
}

function draw(root, scope, app) {
  const field = h("input", { type: "search", name: "q", "data-main": "", maxlength: "2000" });
  const states = select([["", "All"], ...DOCUMENT_STATES.map((one) => [one, stateWords(one)[0]])], "");
  const list = h("div", {});
  const go = () => {
    const given = Object.entries({ q: field.value.trim(), state: states.value }).filter(([, v]) => v);
    app.go(`#/docs/${encodeURIComponent(scope)}?${new URLSearchParams(given)}`);
  };
  states.addEventListener("change", go);
  const body = h("div", {},
    h("div.head", {}, pageHeading("Documents"),
      h("form.tools", { role: "search", onsubmit: (event) => { event.preventDefault(); go(); } },
        labelled("Title, file or id", field), labelled("State", states))),
    list);
  body.parts = { field, states, list };
  fill(root, body);
}

function rows(found, scope, q, state) {
  const list = h("ul.lines", {}, found.items.map(row));
  const more = found.next_cursor && h("button", {
    type: "button",
    onclick: async () => {
      more.disabled = true;
      const next = await page(scope, q, state, found.next_cursor);
      list.append(...next.items.map(row));
      found.next_cursor = next.next_cursor;
      more.disabled = false;
      if (!next.next_cursor) more.remove();
      announce(`${count(next.items.length, "document")} more.`);
    },
  }, "Show more");
  return h("div.stack", {}, list, more && h("div.center", {}, more));
}

function row(item) {
  return h("li", {},
    h("div.what", {},
      h("a", { href: documentLink(item.scope, item.document_id), lang: langOf(item.language) },
        item.title || fileName(item.source) || item.document_id),
      h("div.facts", {},
        h("span", {}, item.source),
        item.version && h("span", {}, `Version ${item.version}`),
        item.state !== "indexed" && item.in_force && h("span", {}, `Version ${item.in_force} stays in force`),
        item.language && h("span", {}, language(item.language)),
        h("span", {}, `updated ${day(item.updated_at)}`),
        item.audiences.length > 0 && h("span.tag", {}, `For ${item.audiences.join(", ")}`)),
      item.reason && h("p.small.quiet", {}, item.reason)),
    stateTag(item.state));
}

function none(q, state, scope, app) {
  const filtered = q || state;
  return h("div.empty", {},
    h("h2", {}, filtered ? "No document fits" : "No documents here yet"),
    h("p", {}, filtered ? "Try a shorter part of the name, or another state."
      : "What is ingested into this scope is listed here, with what became of it."),
    h("div.row", {},
      filtered && h("a.button", { href: `#/docs/${encodeURIComponent(scope)}` }, "Show all"),
      !filtered && app.may("editor")
        && h("a.button.main", { href: `#/upload/${encodeURIComponent(scope)}` }, "Upload documents")));
}
