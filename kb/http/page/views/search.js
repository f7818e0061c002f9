/** Search: a question, its filters, the passages found, and an answer with citations. */

import { api, call } from "../api.js";
import { renderPassage } from "../body.js";
import { announce, fill, h, icon, labelled, openDialog, select } from "../dom.js";
import { failure, headingPath, passageLink, waiting } from "../parts.js";
import { unitSpans } from "../text.js";
import { LANGUAGES, count, day, fileName, langOf, language, validity } from "../words.js";

const MODES = [["hybrid", "Both"], ["text", "Words"], ["vector", "Meaning"]];
const DEFAULTS = { mode: "hybrid", lang: "", as_of: "", hist: "", k: "8", answer: "", doc: "" };

let running = null; // the search in flight
let answers = true; // whether this server answers questions

export async function show(root, route, app, same) {
  const asked = readQuery(route.query);
  if (!same) draw(root, app);
  const parts = root.firstElementChild.parts;
  parts.write(asked);
  running?.abort();
  if (!asked.q.trim()) {
    app.title("Search");
    fill(parts.results, welcome(app));
    if (!same) parts.field.focus();
    return;
  }
  app.title(asked.q);
  await find(parts, asked, app);
}

function readQuery(query) {
  const asked = { q: query.get("q") || "" };
  for (const [name, value] of Object.entries(DEFAULTS)) asked[name] = query.get(name) || value;
  return asked;
}

function address(scope, asked) {
  const given = Object.entries(asked).filter(([name, value]) => value && value !== DEFAULTS[name]);
  return `#/s/${encodeURIComponent(scope)}?${new URLSearchParams(given)}`;
}

/** The form; `root.firstElementChild.parts` holds what later searches write to. */
function draw(root, app) {
  const field = h("input", {
    type: "search", name: "q", "aria-label": "Question or words", placeholder: "Ask, or type words",
    autocomplete: "off", enterkeyhint: "search", "data-main": "", maxlength: "8000",
  });
  const lang = select([["", "All"], ...LANGUAGES.map((code) => [code, language(code)])], "");
  const asOf = h("input", { type: "date" });
  const hist = h("input", { type: "checkbox" });
  const k = select([["8", "8"], ["20", "20"], ["50", "50"]], "8");
  const modes = MODES.map(([value, text]) => radio("mode", value, text));
  const kinds = [radio("answer", "", "Passages"), radio("answer", "1", "Answer")];
  const note = h("span.quiet.small", {});
  const only = h("div.row", {});
  const results = h("div", {});
  const state = { doc: "" };
  const filters = h("details.filters", {}, h("summary", {}, "Filters"),
    h("div.filter-grid", {},
      labelled("Language of the text", lang),
      labelled("As of", asOf, "What was in force at the end of that day."),
      labelled("Passages at most", k),
      h("div.field", {}, h("label.check", {}, hist, "Superseded versions too"))));
  const read = () => ({
    q: field.value, mode: chosen(modes), answer: answers ? chosen(kinds) : "", lang: lang.value,
    as_of: asOf.value, hist: hist.checked ? "1" : "", k: k.value, doc: state.doc,
  });
  const submit = () => {
    const next = address(app.scope, read());
    if (next === location.hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
    else app.go(next);
  };
  const again = () => field.value.trim() && submit();
  const kindChoice = h("fieldset.segments", { onchange: again },
    h("legend.unseen", {}, "Show"), kinds);
  const form = h("form", { role: "search", onsubmit: (event) => { event.preventDefault(); submit(); } },
    h("div.ask", {},
      h("div.field", {}, icon("search"), field, h("kbd", { "aria-hidden": "true" }, "/")),
      h("button.main", { "aria-label": "Search" }, h("span.word", {}, "Search"), icon("search"))),
    h("div.choices", {},
      kindChoice,
      h("fieldset.segments", { onchange: again }, h("legend.unseen", {}, "Search by"), modes),
      filters, note),
    only);
  filters.addEventListener("change", again);
  const body = h("div.narrow.wide", {}, h("h1.unseen", {}, "Search"), form, results);
  body.parts = {
    field, results, kindChoice,
    write(asked) {
      if (document.activeElement !== field || asked.q) field.value = asked.q;
      check(modes, asked.mode);
      check(kinds, asked.answer);
      [lang.value, asOf.value, k.value] = [asked.lang, asked.as_of, asked.k];
      hist.checked = Boolean(asked.hist);
      state.doc = asked.doc;
      const active = [
        asked.lang && language(asked.lang), asked.as_of && `as of ${day(asked.as_of)}`,
        asked.hist && "superseded too", asked.k !== "8" && `at most ${asked.k}`,
      ].filter(Boolean);
      note.textContent = active.join(", ");
      fill(only, asked.doc && [
        h("span.tag", {}, `Only in ${asked.doc}`),
        h("a.small", { href: address(app.scope, { ...asked, doc: "" }) }, "Search everywhere"),
      ]);
      kindChoice.hidden = !answers;
    },
  };
  fill(root, body);
}

function radio(name, value, text) {
  return h("label", {}, h("input", { type: "radio", name, value }), h("span", {}, text));
}

function chosen(labels) {
  return labels.map((label) => label.firstChild).find((input) => input.checked)?.value ?? "";
}

function check(labels, value) {
  for (const label of labels) label.firstChild.checked = label.firstChild.value === value;
}

function welcome(app) {
  const here = app.me.scopes.find((scope) => scope.name === app.scope);
  const empty = here && here.documents === 0;
  return h("div.empty", {},
    h("h2", {}, empty ? "No documents here yet" : "What would you like to know?"),
    empty
      ? h("p", {}, "Once documents are ingested into this scope, their passages are found here.")
      : h("p", {}, here ? `${count(here.documents, "document")} in ${here.title || here.name}. ` : "",
        "Ask in any language: a question in English finds passages in German, Russian or Serbian too. Numbers and section signs, like ",
        h("q", {}, "INV-2024-0815"), " or ", h("q", {}, "§ 15"), ", are found as they stand."),
    h("div.row", {},
      empty && app.may("editor")
        ? h("a.button.main", { href: `#/upload/${app.scope}` }, "Upload documents")
        : h("a", { href: `#/docs/${app.scope}` }, "See all documents")));
}

async function find(parts, asked, app) {
  running = new AbortController();
  const { signal } = running;
  parts.results.setAttribute("aria-busy", "true");
  fill(parts.results, waiting());
  const answered = asked.answer && answers ? ask(asked, app, signal) : null;
  try {
    const [found, answer] = await Promise.all([search(asked, app, signal), answered]);
    parts.kindChoice.hidden = !answers;
    for (const hit of found.hits) app.marks.set(hit.passage_id, hit.highlights);
    fill(parts.results,
      answer && answerBox(answer),
      found.hits.length ? list(found, asked, app) : nothing(asked, app));
    announce(found.hits.length ? `${count(found.hits.length, "passage")} found.` : "Nothing was found.");
  } catch (error) {
    if (error.name === "AbortError" || error.status === 401) throw error;
    fill(parts.results, failure(error, () => find(parts, asked, app)));
    announce(error.message);
  } finally {
    parts.results.removeAttribute("aria-busy");
  }
}

function search(asked, app, signal) {
  return call(api("search"), {
    method: "POST",
    signal,
    body: {
      query: asked.q, scope: app.scope, mode: asked.mode, k: Number(asked.k),
      include_historical: Boolean(asked.hist), as_of: asked.as_of || null,
      language: asked.lang || null, document_ids: asked.doc ? [asked.doc] : null,
    },
  });
}

/** The answer, or null where this server gives none. */
async function ask(asked, app, signal) {
  try {
    return await call(api("ask"), {
      method: "POST", signal,
      body: { question: asked.q, scope: app.scope, as_of: asked.as_of || null },
    });
  } catch (error) {
    if (error.status !== 404 && error.status !== 405) throw error;
    answers = false;
    return null;
  }
}

function list(found, asked, app) {
  const kept = found.mode !== asked.mode ? " by words, since there are no vectors here yet" : "";
  return [
    h("div.found", {},
      h("h2", {}, `${count(found.hits.length, "passage")}${kept}`),
      asked.as_of && h("span", {}, `as of ${day(asked.as_of)}`)),
    h("div.hits", {}, found.hits.map((hit) => hitBox(hit, asked, app))),
  ];
}

function hitBox(hit, asked, app) {
  const spans = unitSpans(hit.text, hit.highlights || []);
  const known = [hit.title, ...hit.heading_path];
  const text = h("div.text", { lang: langOf(hit.language) });
  const draw = (whole) => {
    const { nodes, partial } = renderPassage(hit.text, spans, { whole, known });
    fill(text, nodes);
    return partial;
  };
  const more = draw(false) && h("button.plain", {
    type: "button", "aria-expanded": "false",
    onclick: () => {
      const open = more.getAttribute("aria-expanded") !== "true";
      more.setAttribute("aria-expanded", String(open));
      more.textContent = open ? "Less" : "Whole passage";
      draw(open);
    },
  }, "Whole passage");
  const past = hit.valid_until && new Date(hit.valid_until) <= new Date();
  return h("article.hit", { "aria-label": `${hit.rank}. ${hit.title}` },
    h("h2", {}, h("a", { href: passageLink(hit), lang: langOf(hit.language) }, hit.title)),
    headingPath(hit),
    text,
    h("div.facts", {},
      hit.page && h("span", {}, `Page ${hit.page}`),
      h("span", {}, `Version ${hit.version}`),
      past
        ? h("span.tag.warn", {}, `Superseded, ${validity(hit.valid_from, hit.valid_until)}`)
        : h("span", {}, validity(hit.valid_from, hit.valid_until)),
      h("span", {}, language(hit.language)),
      h("span", {}, fileName(hit.source)),
      h("span.acts", {}, more,
        h("button.plain", { type: "button", onclick: () => cite(hit), "aria-label": `Cite ${hit.title}` },
          "Cite"))));
}

/** A citation to take along: the words, where they stand, the link back. */
function cite(hit) {
  const place = [hit.title, ...hit.heading_path.filter((step) => step !== hit.title)].join(" › ");
  const page = hit.page ? `, page ${hit.page}` : "";
  const url = new URL(passageLink(hit), document.baseURI);
  const text = `“${hit.text.trim()}”\n${place}${page}. ${hit.document_id}, version ${hit.version}, `
    + `SHA-256 ${hit.digest.slice(0, 16)}…, bytes ${hit.byte_start}–${hit.byte_end}.\n${url}`;
  const box = h("textarea", { rows: "9", readonly: true, "aria-label": "Citation" }, text);
  const told = h("span.small", { role: "status" });
  const made = openDialog("Citation", h("div.stack", {}, box, h("div.row", {},
    h("button.main", {
      type: "button",
      onclick: async () => {
        box.select();
        try {
          await navigator.clipboard.writeText(text);
          told.textContent = "Copied";
        } catch {
          told.textContent = "Selected; copy it with your keyboard.";
        }
      },
    }, "Copy"),
    h("button", { type: "button", onclick: () => made.close() }, "Close"), told)));
}

/** An honest nothing, and what to try instead. */
function nothing(asked, app) {
  const looser = [
    asked.lang && ["Search all languages", { ...asked, lang: "" }],
    asked.as_of && ["Search what is in force now", { ...asked, as_of: "" }],
    asked.doc && ["Search all documents", { ...asked, doc: "" }],
    !asked.hist && ["Search superseded versions too", { ...asked, hist: "1" }],
    asked.mode !== "hybrid" && ["Search by words and meaning", { ...asked, mode: "hybrid" }],
  ].filter(Boolean);
  return h("div.empty", {},
    h("h2", {}, "Nothing here answers that"),
    h("p", {}, "No passage you may read comes close enough. Say it in other words, name the thing as the documents do, or look wider:"),
    h("div.row", {}, looser.map(([text, next]) =>
      h("a.button", { href: address(app.scope, next) }, text))));
}

function answerBox(answer) {
  const cited = new Map(answer.citations.map((citation) => [citation.n, citation]));
  const refer = (n) => h("sup", {}, h("a", {
    href: passageLink(cited.get(n)), "aria-label": `Citation ${n}: ${cited.get(n).title}`,
  }, String(n)));
  if (answer.abstained) {
    return h("section.answer", { "aria-label": "Answer" },
      h("h2", {}, "No answer"),
      h("p", {}, "The passages below do not support one, so none is given."));
  }
  return h("section.answer", { "aria-label": "Answer" },
    h("h2", {}, answer.answerer && answer.answerer !== "extractive"
      ? `Answer, worded by ${answer.answerer}` : "Answer, in the documents' own words"),
    answer.nothing_relevant && h("p.help", {}, "Nothing relevant was found. This rests on the nearest passages."),
    h("div.said", {}, answer.statements.map((statement) => h(statement.text.startsWith("|") ? "p.rows" : "p", {},
      statement.text,
      statement.citations.filter((n) => cited.has(n)).map(refer),
      statement.supported === false && h("span.tag.warn", {}, "not supported by a passage")))),
    h("ol.cites", { "aria-label": "Citations" }, answer.citations.map((citation) => h("li", {},
      h("a.n", { href: passageLink(citation), "aria-label": `Citation ${citation.n}` }, String(citation.n)),
      h("span", {},
        h("q", { lang: langOf(citation.language) }, citation.quote), " ",
        h("span.quiet.small", {}, [citation.title, citation.page && `page ${citation.page}`]
          .filter(Boolean).join(", ")))))),
    answer.rejected.length > 0 && h("p.help", {},
      `${count(answer.rejected.length, "quote")} left out, since the documents do not say so where claimed.`));
}
