/** Review: what the scan holds back, each finding in its place, and a person's decision. */

import { api, call } from "../api.js";
import { announce, fill, h, labelled } from "../dom.js";
import { notice, pageHeading, waiting } from "../parts.js";
import { fileName, langOf, language, time } from "../words.js";

const AROUND = 240; // characters that the API gives on either side

export async function show(root, route, app) {
  app.title("Review");
  const [scope] = route.parts;
  const list = h("div", {}, waiting(2));
  fill(root, h("div.narrow.stack", {},
    h("div.head", {}, pageHeading("Review")),
    h("p.quiet", {}, "Documents in which the scan found words that may try to steer a reader's assistant. Nothing of them is searchable until somebody decides."),
    list));
  await look(list, scope);
}

async function look(list, scope) {
  const { items } = await call(api("reviews"), { query: { scope } });
  fill(list, items.length ? items.map((item) => caseBox(item, scope, list)) : h("div.empty", {},
    h("h2", {}, "Nothing waits for review"),
    h("p", {}, "What the scan holds back for a decision appears here.")));
}

function caseBox(item, scope, list) {
  const reason = h("textarea", { rows: "2", maxlength: "2000", required: true });
  const told = h("div", {});
  const buttons = [
    h("button.main", { value: "release" }, "Release"),
    h("button.danger", { value: "reject" }, "Reject and delete its text"),
  ];
  const form = h("form.decide", {
    onsubmit: async (event) => {
      event.preventDefault();
      const verb = event.submitter?.value || "release";
      buttons.forEach((button) => { button.disabled = true; });
      fill(told, notice("", verb === "release" ? "Releasing …" : "Rejecting …"));
      try {
        await call(api("reviews", scope, item.document_id, verb), {
          method: "POST",
          body: {
            reason: reason.value.trim(), version: item.version, digest: item.digest,
            body_digest: item.body_digest,
          },
        });
        const said = verb === "release"
          ? `${item.title || item.document_id} is released and will be searchable in a moment.`
          : `${item.title || item.document_id} is rejected; its text is deleted.`;
        await look(list, scope);
        list.prepend(notice("good", said));
        announce(said);
        document.querySelector("h1")?.focus();
      } catch (error) {
        fill(told, notice("bad", error.message, error.next));
        buttons.forEach((button) => { button.disabled = false; });
      }
    },
  },
    labelled("Why", reason, "Kept in the document's log with your name."),
    told, h("div.row", {}, buttons));
  const findings = h("div", {});
  const box = h("article.case", { "aria-label": item.title || item.document_id },
    h("h2", { lang: langOf(item.language) }, item.title || fileName(item.source) || item.document_id),
    h("div.facts", {},
      h("span", {}, item.source),
      h("span", {}, `Version ${item.version}`),
      item.language && h("span", {}, language(item.language)),
      h("span", {}, `held since ${time(item.since)}`)),
    findings, form);
  showFindings(findings, item);
  return box;
}

/** Findings about the same place share it; hidden places are each their own. */
function showFindings(place, item) {
  const groups = new Map();
  for (const one of item.findings) {
    const key = one.matched ? `${one.part} ${one.place}` : one.excerpt + one.part;
    groups.set(key, [...(groups.get(key) || []), one]);
  }
  fill(place, [...groups.values()].map((group) => finding(group, item)));
}

function finding(group, item) {
  const [first] = group;
  return h(`section.finding.${first.severity}`, { "aria-label": first.explanation },
    group.map((one) => [
      h("h3", {}, one.explanation),
      h("div.facts", {},
        h(`span.tag${one.severity === "high" ? ".bad" : ".warn"}`, {}, severityWords(one.severity)),
        h("span", {}, placeWords(one)),
        h("code", {}, one.rule_id)),
    ]),
    h("blockquote", { lang: langOf(item.language) }, inPlace(group)),
    group.filter((one) => one.decoded).map((one) => [
      h("p.small.quiet", {}, "What it says when decoded:"),
      h("blockquote.decoded", {}, visible(one.decoded))]));
}

function severityWords(severity) {
  return { high: "Strong", medium: "Suspicious", low: "Weak", info: "For information" }[severity] || severity;
}

function placeWords({ part, place }) {
  const where = part === "body" ? "in the visible text" : `hidden: ${part.replaceAll("_", " ")}`;
  return place ? `${where}, ${place}` : where;
}

/** The words that were found, marked between those around them; of hidden text, an excerpt. */
function inPlace(group) {
  const [{ before, matched, after, excerpt }] = group;
  if (!matched) return visible(excerpt);
  const head = before.length < AROUND ? before : before.replace(/^\S*\s+/, "… ");
  const tail = after.length < AROUND ? after : after.replace(/\s+\S*$/, " …");
  const text = (head + matched + tail).trim();
  const spans = group
    .map((one) => [text.indexOf(one.matched), one.matched.length])
    .filter(([start]) => start >= 0)
    .map(([start, length]) => [start, start + length])
    .sort((a, b) => a[0] - b[0]);
  const parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    if (end <= at) continue;
    const from = Math.max(at, start);
    parts.push(visible(text.slice(at, from)), h("mark", {}, visible(text.slice(from, end))));
    at = end;
  }
  return [parts, visible(text.slice(at))];
}

/** Characters that show nothing, named, since hiding is what they were there for. */
function visible(text) {
  return text.replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad]|[\u{e0000}-\u{e007f}]/gu,
    (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase()}⟩`);
}
