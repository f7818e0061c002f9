/**
 * A document's body as elements: headings, lists, tables, pages, with the cited passage and the
 * words of a search marked. Texts stay what they are: addresses in them can be followed only after
 * somebody asked for links.
 */

import { add, h } from "./dom.js";
import { excerpt, fromCodePoints } from "./text.js";

const ADDRESS = /\bhttps?:\/\/[^\s<>"'()[\]{}|\\^`]+[^\s<>"'()[\]{}|\\^`.,;:!?]/g;
const MANY = 300; // blocks from which those off screen are not laid out

/**
 * The blocks of a body.
 *
 * @param {{body: string, blocks: any[]}} given as the API gives it; offsets in code points
 * @param {{cited: [number, number]|null, marks: [number, number][], links: boolean,
 *   units?: boolean}} how places in UTF-16 units of the body; `units`: so are those of the blocks
 * @returns {{nodes: HTMLElement[], cited: HTMLElement|null, headings: Map<number, HTMLElement>}}
 *   `headings` by where they start, in UTF-16 units
 */
export function renderBody({ body, blocks }, how) {
  const unit = how.units ? (offset) => offset : fromCodePoints(body);
  const drawn = { nodes: [], cited: null, headings: new Map() };
  let page = null;
  let list = null;
  for (const block of blocks) {
    const start = unit(block.char_start);
    const end = unit(block.char_end);
    const inside = how.cited && start < how.cited[1] && end > how.cited[0];
    if (block.page !== page) {
      page = block.page;
      list = null;
      if (page) drawn.nodes.push(h("p.page", {}, `Page ${page}`));
    }
    const into = inside ? citedPlace(drawn) : drawn;
    if (into.last !== drawn.last) list = null;
    drawn.last = into.last;
    const made = draw(block.kind, body, start, end, how);
    if (block.kind === "heading") drawn.headings.set(start, made);
    if (blocks.length > MANY && !inside) made.classList.add("long");
    if (block.kind === "list_item") {
      if (!list) into.nodes.push(list = h("ul.items", {}));
      list.append(made);
      continue;
    }
    list = null;
    into.nodes.push(made);
  }
  if (drawn.cited) add(drawn.cited, drawn.citedNodes);
  return drawn;
}

/** The section that holds the cited blocks, made with the first of them. */
function citedPlace(drawn) {
  if (!drawn.cited) {
    drawn.cited = h("section.cited", { tabindex: "-1", "aria-label": "Cited passage" });
    drawn.citedNodes = [];
    drawn.nodes.push(drawn.cited);
  }
  return { nodes: drawn.citedNodes, last: "cited" };
}

function draw(kind, body, start, end, how) {
  const text = body.slice(start, end);
  switch (kind) {
    case "heading": {
      const level = /^#+/.exec(text)?.[0].length || 1;
      return h(`h${Math.min(6, level + 1)}.heading`, {},
        inline(body, start + /^#*\s*/.exec(text)[0].length, end, how));
    }
    case "list_item": {
      const [lead, indent, bullet] = /^(\s*)([-*+]|\d+[.)])?\s*/.exec(text);
      const depth = Math.min(4, Math.floor(indent.length / 2));
      return h(`li.item${depth ? `.in-${depth}` : ""}`, {},
        h("span.bullet", { "aria-hidden": /\d/.test(bullet || "") ? null : "true" },
          /\d/.test(bullet || "") ? bullet : "•"),
        inline(body, start + lead.length, end, how));
    }
    case "table":
      return table(body, start, text, how);
    case "code": {
      const open = text.indexOf("\n") + 1;
      const close = Math.max(open, text.lastIndexOf("\n"));
      return h("pre", {}, inline(body, start + open, start + close, how));
    }
    case "caption": case "footnote": case "figure_text":
      return h("p.aside", {}, inline(body, start, end, how));
    default:
      return h("p", {}, inline(body, start, end, how));
  }
}

function table(body, start, text, how) {
  const rows = [];
  let at = start;
  for (const line of text.split("\n")) {
    rows.push(cells(line, at));
    at += line.length + 1;
  }
  const filled = (row) => row.some(([from, to]) => to > from);
  const head = filled(rows[0]) ? rows[0] : null;
  const row = (tag, places) => h("tr", {}, places.map(([from, to]) =>
    h(tag, { scope: tag === "th" ? "col" : null }, inline(body, from, to, how))));
  return h("div.scroll", { role: "region", "aria-label": "Table", tabindex: "0" }, h("table", {},
    head && h("thead", {}, row("th", head)),
    h("tbody", {}, rows.slice(2).map((places) => row("td", places)))));
}

/** Places of a row's cells between its unescaped bars, without spaces around. */
function cells(line, at) {
  const bars = [...line.matchAll(/(?<!\\)\|/g)].map((bar) => bar.index);
  return bars.slice(0, -1).map((bar, nth) => {
    const raw = line.slice(bar + 1, bars[nth + 1]);
    const from = bar + 1 + (raw.length - raw.trimStart().length);
    return [at + from, at + Math.max(from, bar + 1 + raw.trimEnd().length)];
  });
}

/** A stretch of the body as text nodes, marks and, where asked for, links. */
function inline(body, start, end, how) {
  const made = [];
  const cuts = new Set([start, end]);
  const spans = how.marks.filter(([from, to]) => from < end && to > start);
  for (const span of spans) span.forEach((cut) => cut > start && cut < end && cuts.add(cut));
  const links = how.links ? addresses(body, start, end) : [];
  for (const link of links) { cuts.add(link.start); cuts.add(link.end); }
  const places = [...cuts].sort((a, b) => a - b);
  let anchor = null;
  for (let nth = 0; nth + 1 < places.length; nth++) {
    const [from, to] = [places[nth], places[nth + 1]];
    const text = plain(body.slice(from, to), from === start);
    const isMark = spans.some((span) => span[0] <= from && span[1] >= to);
    const link = links.find((one) => one.start <= from && one.end >= to);
    const piece = isMark ? h("mark", {}, text) : text;
    if (!link) { anchor = null; made.push(piece); continue; }
    if (anchor?.href !== link.href) {
      anchor = { href: link.href, made: h("a", {
        href: link.href, target: "_blank", rel: "noopener noreferrer nofollow",
      }) };
      made.push(anchor.made);
    }
    anchor.made.append(piece);
  }
  return made;
}

/** Without the backslashes that keep a text from being read as Markdown. */
function plain(text, first) {
  const unbarred = text.replaceAll("\\|", "|");
  return first ? unbarred.replace(/^(\d{1,9})\\(?=[.)])/, "$1").replace(/^\\(?=[^\w\s])/, "") : unbarred;
}

function addresses(body, start, end) {
  return [...body.slice(start, end).matchAll(ADDRESS)].map((match) => ({
    start: start + match.index, end: start + match.index + match[0].length, href: match[0],
  }));
}

/** Whether a body has addresses that could be followed. */
export function hasAddresses(body) {
  return body.search(ADDRESS) >= 0;
}

const KINDS = [
  ["heading", /^#{1,6}\s/], ["list_item", /^\s*(?:[-*+]|\d{1,9}[.)])\s/], ["table", /^\|/],
  ["code", /^`{3}/],
];

/**
 * A passage as blocks, as far as its text tells: whole, or the part with most marks.
 *
 * @param {string} text the passage
 * @param {[number, number][]} marks in UTF-16 units
 * @param {{whole: boolean, known: string[]}} how `known`: headings shown elsewhere, left out here
 * @returns {{nodes: HTMLElement[], partial: boolean}}
 */
export function renderPassage(text, marks, { whole, known }) {
  const part = whole ? { start: 0, end: text.length } : excerpt(text, marks);
  const blocks = [];
  for (const found of text.matchAll(/(?:`{3}[\s\S]*?\n`{3}|.+(?:\n(?!\n).+)*)/g)) {
    const kind = KINDS.find(([, start]) => start.test(found[0]))?.[0] || "paragraph";
    const [start, end] = [found.index, found.index + found[0].length];
    if (kind === "heading" && known.includes(found[0].replace(/^#+\s*/, "").trim())) continue;
    const lines = kind === "list_item" ? itemLines(found[0], start) : [[start, end]];
    for (const [from, to] of lines) {
      const cut = kind === "table" ? [from, to] : [Math.max(from, part.start), Math.min(to, part.end)];
      if (from >= part.end || to <= part.start || cut[0] >= cut[1]) continue;
      blocks.push({ kind: cut[0] > from ? "paragraph" : kind, page: null, char_start: cut[0], char_end: cut[1] });
    }
  }
  const { nodes } = renderBody({ body: text, blocks }, { cited: null, marks, links: false, units: true });
  const partial = part.start > 0 || part.end < text.length;
  if (part.start > 0) nodes[0]?.prepend("… ");
  if (part.end < text.length) nodes.at(-1)?.append(" …");
  return { nodes, partial };
}

/** A list without blank lines between its items. */
function itemLines(text, at) {
  const places = [];
  for (const line of text.split("\n")) {
    if (/^\s*(?:[-*+]|\d{1,9}[.)])\s/.test(line) || !places.length) places.push([at, at + line.length]);
    else places.at(-1)[1] = at + line.length;
    at += line.length + 1;
  }
  return places;
}
