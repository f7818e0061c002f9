/**
 * Elements without markup: every string becomes a text node, so no passage can become part of the
 * page. Nothing in this page assigns innerHTML.
 */

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  documents: "M7 3h7l5 5v13H7zM14 3v5h5M10 13h6M10 17h6",
  upload: "M12 16V4M7 9l5-5 5 5M4 20h16",
  review: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6zM9 12l2 2 4-4",
  watches: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
};

/**
 * An element with attributes and children.
 *
 * @param {string} tag "p", or with classes "p.quiet.small"
 * @param {Record<string, any>} [given] attributes; `on…` are listeners, null and false leave out
 * @param {...any} children nodes, strings, arrays of both; null and false are left out
 * @returns {HTMLElement}
 */
export function h(tag, given = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const made = document.createElement(name);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(given)) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "selected") made[key] = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  return add(made, ...children);
}

/** Append nodes and strings; arrays are flattened, null and false passed over. */
export function add(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child != null && child !== false) parent.append(child);
  }
  return parent;
}

/** Replace what an element holds. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return add(parent, ...children);
}

/** A decorative line drawing. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** The mark of the page. */
export function brand() {
  return h("img", { src: "static/icon.svg", alt: "", width: "28", height: "28" });
}

/** Tell screen readers; an unchanged text is said again. */
export function announce(text) {
  const said = document.getElementById("said");
  said.textContent = "";
  setTimeout(() => { said.textContent = text; }, 60);
}

/** A labelled field. `field` gets the label's id by nesting, so no ids are needed. */
export function labelled(text, field, help = null) {
  return h("div.field", {}, h("label", {}, text, field), help && h("p.help", {}, help));
}

/** A select over `[value, text]` pairs. */
export function select(pairs, chosen, given = {}) {
  return h("select", given, pairs.map(([value, text]) =>
    h("option", { value, selected: value === chosen }, text)));
}

let dialogs = 0;

/** A modal dialog that closes with Esc and gives the focus back. */
export function openDialog(title, ...content) {
  const name = `dialog-${++dialogs}`;
  const made = h("dialog", { "aria-labelledby": name }, h("h2", { id: name }, title), content);
  made.addEventListener("close", () => made.remove());
  document.body.append(made);
  made.showModal();
  return made;
}
