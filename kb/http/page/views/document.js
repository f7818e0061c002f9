/** A document: its text, opened at the cited passage, its versions, and what changed between two. */

import { api, call } from "../api.js";
import { hasAddresses, renderBody } from "../body.js";
import { announce, fill, h, labelled, select } from "../dom.js";
import { documentLink, failure, notice, pageHeading, stateTag, waiting } from "../parts.js";
import { fromBytes, unitSpans } from "../text.js";
import { count, day, fileName, langOf, language, size, time, validity } from "../words.js";

let held = null; // the document on screen: {key, document, versions, outline, body, links}

export async function show(root, route, app, same) {
  const [scope, id] = route.parts;
  const { query } = route;
  if (!same) fill(root, h("div.narrow", {}, waiting()));
  const document_ = same && held?.scope === scope && held.id === id ? held : await open(scope, id);
  held = document_;
  app.title(held.document.title || id);
  const tab = query.get("tab") || "text";
  const wanted = Number(query.get("v")) || current(held.versions) || held.document.version;
  const section = query.get("n");
  if (tab === "text" && section && held.view?.shown === shownBy(wanted, query)) {
    return turnTo(at(held.view.outline, section, held.view));
  }
  held.view = null;
  const frame = draw(root, held, tab, wanted, query, app);
  if (tab === "history") return historyView(frame, held);
  if (tab === "diff") return diffView(frame, held, query);
  return textView(frame, held, wanted, query, app);
}

/** What makes one rendering of the text differ from another. */
function shownBy(version, query) {
  return `${version} ${query.get("p") || ""}`;
}

async function open(scope, id) {
  const [found, history] = await Promise.all([
    call(api("documents", scope, id)),
    call(api("documents", scope, id, "history")),
  ]);
  return { scope, id, document: found, versions: history.items, texts: new Map(), links: false };
}

/** The version in force, or undefined. */
function current(versions) {
  const now = new Date();
  return versions.find((one) => one.validity.some((at) =>
    new Date(at.valid_from) <= now && (!at.valid_until || new Date(at.valid_until) > now)))?.version;
}

function titleOf({ document: found, id }, version) {
  return version?.title || found.title || fileName(found.source) || id;
}

/** Heading, facts and tabs; returns where the tab's content goes. */
function draw(root, doc, tab, wanted, query, app) {
  const { document: found, versions, scope, id } = doc;
  const version = versions.find((one) => one.version === wanted);
  const newest = current(versions);
  const tabLink = (name, text, given = {}) => h("a", {
    href: documentLink(scope, id, { v: query.get("v"), p: query.get("p"), ...given }),
    "aria-current": tab === name ? "page" : null,
  }, text);
  const lang = langOf(version?.language || found.language);
  const content = h("div", {});
  const heading = root.querySelector("h1");
  const again = heading && root.firstElementChild?.docKey === `${scope}/${id}/${wanted}`;
  if (again) {
    fill(root.firstElementChild.tabs, tabs());
    root.firstElementChild.content.replaceWith(content);
    root.firstElementChild.content = content;
    return content;
  }
  function tabs() {
    return [
      tabLink("text", "Text"),
      tabLink("history", versions.length > 1 ? `History (${versions.length})` : "History", { tab: "history" }),
      versions.length > 1 && tabLink("diff", "Changes", { tab: "diff" }),
    ];
  }
  const tabBar = h("nav.tabs", { "aria-label": "Document" }, tabs());
  const intervals = version?.validity || [];
  const last = intervals[intervals.length - 1];
  const top = h("div", {},
    h("div.doc-head", {},
      pageHeading(titleOf(doc, version), { lang }),
      h("div.facts", {},
        found.state !== "indexed" && stateTag(found.state),
        version && h("span", {}, `Version ${version.version}`),
        last && h("span", {}, validity(last.valid_from, last.valid_until)),
        h("span", {}, language(version?.language || found.language)),
        h("span", {}, fileName(found.source)),
        found.size_bytes != null && h("span", {}, size(version?.size_bytes ?? found.size_bytes)),
        found.audiences.length > 0 && h("span.tag", {}, `For ${found.audiences.join(", ")}`),
        h("a", { href: `#/s/${encodeURIComponent(scope)}?${new URLSearchParams({ doc: id })}` },
          "Search in this document")),
      found.reason && found.state !== "indexed" && notice("warn", found.reason),
      newest && wanted !== newest && notice("warn",
        `This is version ${wanted}, which is no longer in force.`,
        h("span.row", {},
          h("a", { href: documentLink(scope, id, { v: newest }) }, `Read version ${newest}`),
          h("a", { href: documentLink(scope, id, { tab: "diff", from: wanted, to: newest }) },
            "See what changed"))),
      tabBar),
    content);
  top.docKey = `${scope}/${id}/${wanted}`;
  top.tabs = tabBar;
  top.content = content;
  fill(root, top);
  return content;
}

/** Body, outline and the place of a passage, for one version; kept while the document is open. */
async function load(doc, version) {
  if (!doc.texts.has(version)) {
    const [text, outline] = await Promise.all([
      call(api("documents", doc.scope, doc.id, "versions", String(version), "body")),
      call(api("documents", doc.scope, doc.id, "outline"), { query: { version } })
        .catch((error) => { if (error.status === 404) return null; throw error; }),
    ]);
    text.units = fromBytes(text.body);
    doc.texts.set(version, { text, outline });
  }
  return doc.texts.get(version);
}

async function textView(frame, doc, version, query, app) {
  fill(frame, waiting());
  let loaded;
  try {
    loaded = await load(doc, version);
  } catch (error) {
    if (error.status !== 404) throw error;
    return fill(frame, notice("", "There is no text to read of this version.", doc.document.reason));
  }
  const { text, outline } = loaded;
  const passage = query.get("p");
  const cited = passage && await place(doc, passage, version, text);
  const spans = cited && app.marks.get(passage);
  const marks = spans
    ? unitSpans(cited.text, spans).map(([start, end]) => [start + cited.start, end + cited.start])
    : [];
  const drawn = renderBody(text, {
    cited: cited && [cited.start, cited.end], marks, links: doc.links,
  });
  const lang = langOf(doc.versions.find((one) => one.version === version)?.language);
  const side = outline && contents(outline.outline, doc, version, drawn, text);
  const links = hasAddresses(text.body) && h("label.check.small", {}, h("input", {
    type: "checkbox", checked: doc.links,
    onchange: (event) => { doc.links = event.target.checked; textView(frame, doc, version, query, app); },
  }), "Make web addresses links");
  fill(frame,
    passage && !cited && notice("warn", `The cited passage is not in version ${version}.`,
      h("a", { href: documentLink(doc.scope, doc.id, { tab: "history" }) }, "Look at the versions")),
    h(side ? "div.doc" : "div.doc.flat", {}, side,
      h("div", {},
        links && h("div.row.apart", {}, h("span"), links),
        h("article.sheet", { lang, "aria-label": "Text" }, drawn.nodes))));
  doc.view = { shown: shownBy(version, query), outline, drawn, text };
  turnTo(drawn.cited || at(outline, query.get("n"), doc.view));
  if (drawn.cited) announce("Opened at the cited passage.");
  return side && follow(drawn, side);
}

/** Bring a place into view and give it the focus. */
function turnTo(target) {
  if (!target) return;
  target.tabIndex = -1;
  target.scrollIntoView({ block: "start" });
  target.focus({ preventScroll: true });
}

/** Where a passage stands in the body, or null where this version lacks it. */
async function place(doc, passage, version, text) {
  try {
    const found = await call(api("passages", doc.scope, passage), { query: { version } });
    return {
      text: found.text, start: text.units(found.byte_start), end: text.units(found.byte_end),
    };
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

function at(outline, nodeId, { drawn, text }) {
  const find = (node) => node.node_id === nodeId ? node : node.children.map(find).find(Boolean);
  const node = nodeId && outline && find(outline.outline);
  return node ? drawn.headings.get(text.units(node.byte_start)) : null;
}

/** The outline beside the text; nothing where it would hold one line. */
function contents(top, doc, version, drawn, text) {
  let nodes = top.children;
  if (nodes.length === 1) nodes = nodes[0].children;
  if (nodes.length < 2) return null;
  const item = (node) => h("li", {},
    h("a", {
      href: documentLink(doc.scope, doc.id, { v: version, n: node.node_id }),
      "data-at": String(text.units(node.byte_start)),
    }, node.title),
    node.children.length > 0 && h("ol", {}, node.children.map(item)));
  const lang = langOf(doc.versions.find((one) => one.version === version)?.language);
  const wide = matchMedia("(min-width: 60.01rem)").matches;
  return h("nav.side", { "aria-label": "Contents" },
    h("details", { open: wide }, h("summary", {}, "Contents"),
      h("h2", {}, "Contents"), h("ol", { lang }, nodes.map(item))));
}

/** Say in the outline where the reader is; returns what ends it. */
function follow(drawn, side) {
  const links = new Map([...side.querySelectorAll("a")].map((link) => [Number(link.dataset.at), link]));
  const starts = [...drawn.headings.keys()].filter((start) => links.has(start));
  let waits = false;
  const look = () => {
    waits = false;
    const top = (start) => drawn.headings.get(start).getBoundingClientRect().top;
    const turnedTo = starts.find((start) => drawn.headings.get(start) === document.activeElement
      && top(start) > 0 && top(start) < innerHeight);
    const here = turnedTo ?? starts.filter((start) => top(start) < innerHeight * 0.3).at(-1) ?? starts[0];
    for (const [start, link] of links) {
      if (start === here) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  };
  const soon = () => { if (!waits) { waits = true; requestAnimationFrame(look); } };
  addEventListener("scroll", soon, { passive: true });
  document.addEventListener("focusin", soon);
  look();
  return () => {
    removeEventListener("scroll", soon);
    document.removeEventListener("focusin", soon);
  };
}

function historyView(frame, doc) {
  const { versions, scope, id, document: found } = doc;
  const rows = [...versions].reverse().map((one, nth, all) => {
    const before = all[nth + 1];
    const readable = !one.state || one.state === "indexed";
    return h("li", {},
      h("span.v", { "aria-label": `Version ${one.version}` }, `v${one.version}`),
      h("div", {},
        h("p", {}, readable
          ? h("a", { href: documentLink(scope, id, { v: one.version }) }, one.title || id)
          : h("strong", {}, one.title || id)),
        h("div.facts", {},
          one.state && one.state !== "indexed" && stateTag(one.state),
          one.validity.length
            ? one.validity.map((i) => h("span", {}, validity(i.valid_from, i.valid_until)))
            : h("span", {}, one.reason || "never in force"),
          h("span", {}, `stored ${time(one.created_at)}`),
          h("span", {}, size(one.size_bytes)),
          h("code", { title: "SHA-256 of the bytes" }, one.digest.slice(0, 12)))),
      before && readable ? h("a", {
        href: documentLink(scope, id, { tab: "diff", from: before.version, to: one.version }),
      }, `Changes since version ${before.version}`) : h("span"));
  });
  const events = [...found.lifecycle].reverse().map((event) => h("li", {},
    h("span.what", {}, eventWords(event)),
    h("span.quiet.small", {}, [time(event.at), event.actor].filter(Boolean).join(", "))));
  fill(frame, h("div.stack", {},
    h("ol.lines.versions", { "aria-label": "Versions", reversed: true }, rows),
    events.length > 0 && h("h2", {}, "What happened"),
    events.length > 0 && h("ol.lines", { "aria-label": "Events" }, events)));
}

function eventWords({ event, version, details }) {
  const what = event.replaceAll("_", " ");
  const reason = details?.reason ? `: ${details.reason}` : details?.verdict ? `: ${details.verdict}` : "";
  const said = `${what.charAt(0).toUpperCase()}${what.slice(1)}${reason}`;
  return version ? `${said} (version ${version})` : said;
}

async function diffView(frame, doc, query) {
  const { versions, scope, id } = doc;
  const readable = versions.filter((one) => !one.state || one.state === "indexed");
  const to = Number(query.get("to")) || readable.at(-1)?.version;
  const from = Number(query.get("from"))
    || readable.filter((one) => one.version < to).at(-1)?.version || readable[0]?.version;
  const pairs = readable.map((one) => {
    const held_ = one.validity.at(-1);
    return [String(one.version), `Version ${one.version}${held_ ? `, ${day(held_.valid_from)}` : ""}`];
  });
  const first = select(pairs, String(from));
  const second = select(pairs, String(to));
  const go = () => {
    location.hash = documentLink(scope, id, { tab: "diff", from: first.value, to: second.value });
  };
  first.addEventListener("change", go);
  second.addEventListener("change", go);
  const place_ = h("div", {}, waiting());
  fill(frame, h("div.stack", {}, h("div.head", {}, h("div.tools", {},
    labelled("From", first), labelled("To", second))), place_));
  if (!from || !to || from === to) {
    return fill(place_, notice("", "Choose two versions to see what changed between them."));
  }
  try {
    const found = await call(api("documents", scope, id, "diff"), { query: { from, to } });
    const lang = langOf(versions.find((one) => one.version === to)?.language);
    fill(place_, changes(found.hunks, lang));
  } catch (error) {
    if (error.status === 401) throw error;
    fill(place_, failure(error, () => diffView(frame, doc, query)));
  }
}

/** Hunks for reading: signs beside colours, paragraphs without changes folded. */
function changes(hunks, lang) {
  if (hunks.every((hunk) => hunk.op === "equal")) {
    return notice("", "The texts are the same; only the bytes or the form differ.");
  }
  const paragraphs = [[]];
  for (const { op, text } of hunks) {
    text.split(/\n{2,}/).forEach((piece, nth) => {
      if (nth) paragraphs.push([]);
      if (piece) paragraphs.at(-1).push({ op, text: piece });
    });
  }
  const told = paragraphs.filter((pieces) => pieces.some((piece) => piece.text.trim()));
  const touched = told.map((pieces) => pieces.some((piece) => piece.op !== "equal"));
  const near = (nth) => touched[nth - 1] || touched[nth] || touched[nth + 1]
    || (headingLike(told[nth]) && touched[nth + 2]);
  const nodes = [];
  let folded = [];
  const unfold = () => {
    if (folded.length) nodes.push(folded.length > 1 ? fold(folded) : paragraph(folded[0]));
    folded = [];
  };
  told.forEach((pieces, nth) => {
    if (near(nth)) { unfold(); nodes.push(paragraph(pieces)); } else folded.push(pieces);
  });
  unfold();
  return h("article.sheet.diff", { lang, "aria-label": "Changes" }, nodes);
}

function headingLike(pieces) {
  return pieces.length > 0 && /^#{1,6}\s/.test(pieces[0].text);
}

function paragraph(pieces) {
  const heading = headingLike(pieces);
  return h(heading ? "p.heading" : "p", {}, pieces.map(({ op, text }, nth) => {
    const said = heading && nth === 0 ? text.replace(/^#+\s+/, "") : text;
    if (op === "insert") return h("ins", {}, h("span.unseen", {}, " added: "), said);
    if (op === "delete") return h("del", {}, h("span.unseen", {}, " removed: "), said);
    return said;
  }));
}

function fold(paragraphs) {
  const place_ = h("p.gap", {}, h("button.plain", {
    type: "button", onclick: () => place_.replaceWith(...paragraphs.map(paragraph)),
  }, `${count(paragraphs.length, "paragraph")} without changes`));
  return place_;
}
