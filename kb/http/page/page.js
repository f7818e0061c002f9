/**
 * The page: who is here, which view the address names, and the keys that work everywhere.
 * Views live in views/, each with one function `show(root, route, app)`.
 */

import { Problem, api, call, useToken } from "./api.js";
import { add, announce, brand, fill, h, icon, openDialog } from "./dom.js";
import { failure } from "./parts.js";
import { show as signIn } from "./views/signin.js";

const VIEWS = {
  s: { load: () => import("./views/search.js"), word: "Search", icon: "search" },
  docs: { load: () => import("./views/documents.js"), word: "Documents", icon: "documents" },
  d: { load: () => import("./views/document.js"), under: "docs" },
  upload: { load: () => import("./views/upload.js"), word: "Upload", icon: "upload", role: "editor" },
  review: { load: () => import("./views/review.js"), word: "Review", icon: "review", role: "editor" },
  watches: { load: () => import("./views/watches.js"), word: "Watches", icon: "watches", role: "editor" },
};
const RANKS = ["viewer", "editor", "admin", "system"];
const KEYS_OFF = "kb.single-keys-off";

const root = document.getElementById("content");
const bar = document.getElementById("bar");
let leave = null; // what the view in place wants done before the next
let shown = ""; // the view in place, without its query
let place = null; // where that view stands; one that comes late writes to a place nobody sees
let turn = 0; // counts what the address asked for
let arrived = false; // whether a view stood before: then the next one takes the focus

/** What views may use: who is here and how to get elsewhere. */
const app = {
  me: null,
  scope: "",
  marks: new Map(), // passage id to the spans a search found, for the document that opens next
  go(hash) { location.hash = hash; },
  may(role) { return RANKS.indexOf(app.me.role) >= RANKS.indexOf(role); },
  title(text) { document.title = text ? `${text} · Knowledge base` : "Knowledge base"; },
  signedIn: start,
};

/** The address after the hash: `#/view/part/part?query`. */
function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { view, parts, query: new URLSearchParams(query || "") };
}

async function start() {
  try {
    app.me = await call(api("me"));
  } catch (error) {
    bar.hidden = true;
    if (error instanceof Problem && error.status === 401) return signIn(root, app);
    return fill(root, failure(error, start));
  }
  useToken(app.me.csrf);
  return follow();
}

async function follow() {
  if (!app.me) return;
  const route = parse();
  const view = VIEWS[route.view];
  const held = app.me.scopes.map((scope) => scope.name);
  if (!view || !route.parts[0]) {
    const first = [remembered(), ...held].find((name) => held.includes(name));
    if (first) return location.replace(`#/s/${first}`);
    return nothingYet();
  }
  if (view.under && !route.parts[1]) {
    return location.replace(`#/${view.under}/${encodeURIComponent(route.parts[0])}`);
  }
  const [scope] = route.parts;
  root.setAttribute("aria-busy", "true");
  const mine = ++turn;
  try {
    if (!holds(scope)) app.me = await call(api("me")); // perhaps it is new
  } catch (error) {
    if (mine !== turn) return;
    return error.status === 401 ? ended() : instead(failure(error, follow), route.view);
  }
  if (mine !== turn) return;
  app.scope = holds(scope) ? scope : "";
  drawBar(route);
  if (!app.scope) return noScope(scope, route.view);
  sessionStorage.setItem("kb.scope", scope);
  const module = await view.load();
  if (mine !== turn) return;
  const key = [route.view, ...route.parts].join("/");
  const same = key === shown;
  if (!same) {
    leave?.();
    leave = null;
    shown = key;
    fill(root, place = h("div"));
    window.scrollTo(0, 0);
  }
  const here = place;
  try {
    const end = await module.show(here, route, app, same);
    if (here !== place) return end?.();
    leave = end || leave;
    const placed = root !== document.activeElement && root.contains(document.activeElement);
    if (!same && !placed && arrived) root.querySelector("[data-focus]")?.focus({ preventScroll: true });
  } catch (error) {
    if (error.name === "AbortError" || here !== place) return;
    if (error.status === 401) return ended();
    fill(here, failure(error, () => { shown = ""; follow(); }));
    announce(error.message);
  } finally {
    if (mine === turn) {
      root.removeAttribute("aria-busy");
      root.dataset.view = route.view;
      arrived = true;
    }
  }
}

function holds(name) {
  return app.me.scopes.some((scope) => scope.name === name);
}

/** What stands where a view cannot. */
function instead(content, view) {
  leave?.();
  leave = null;
  shown = "";
  place = null;
  fill(root, content);
  root.removeAttribute("aria-busy");
  root.dataset.view = view;
  arrived = true;
}

/** A scope that there is not, or not for this reader: the two look the same. */
function noScope(name, view) {
  app.title("");
  instead(failure({
    status: 404, message: `There is no scope “${name}” that you may read.`,
    next: "Choose one above, or ask an administrator for it.",
  }), view);
}

function remembered() {
  return sessionStorage.getItem("kb.scope");
}

function ended() {
  app.me = null;
  shown = "";
  place = null;
  bar.hidden = true;
  signIn(root, app, "Your session has ended. Sign in again and you are back where you were.");
}

function nothingYet() {
  drawBar({ view: "" });
  app.title("");
  fill(root, h("div.empty", {},
    h("h1", {}, "Nothing to read yet"),
    h("p", {}, "You hold no scope with documents. Ask an administrator for one, or ingest a folder:"),
    h("p", {}, h("code", {}, "kb ingest FOLDER --scope NAME"))));
}

/** The head of the page: scopes and views. */
function drawBar(route) {
  bar.hidden = false;
  const { scopes, name, actor, role } = app.me;
  const here = VIEWS[route.view]?.under || route.view;
  const chooser = h("select", {
    "aria-label": "Scope",
    onchange: (event) => app.go(`#/${here || "s"}/${event.target.value}`),
  }, !app.scope && h("option", { value: "", selected: true, disabled: true }, "Choose a scope"),
  scopes.map((scope) => h("option", {
    value: scope.name, selected: scope.name === app.scope,
  }, scope.title || scope.name)));
  const links = Object.entries(VIEWS)
    .filter(([, view]) => view.word && app.scope && (!view.role || app.may(view.role)))
    .map(([key, view]) => h("a", {
      href: `#/${key}/${encodeURIComponent(app.scope)}`,
      "aria-current": key === here ? "page" : null,
    }, icon(view.icon), h("span", {}, view.word)));
  const account = h("button.plain.account", {
    type: "button", "aria-label": `Account of ${name || actor}`, onclick: showAccount,
  }, (name || actor || role).slice(0, 1).toUpperCase());
  fill(bar, h("div.bar-in", {},
    h("a.brand", {
      href: app.scope ? `#/s/${encodeURIComponent(app.scope)}` : "#/", "aria-label": "Knowledge base",
    },
      brand(), h("span.word", {}, "Knowledge base")),
    scopes.length > 0 && h("div.scope", {}, chooser),
    h("nav.views", { "aria-label": "Views" }, links),
    account));
}

function showAccount() {
  const keys = h("input", {
    type: "checkbox", checked: !localStorage.getItem(KEYS_OFF),
    onchange: (event) => event.target.checked
      ? localStorage.removeItem(KEYS_OFF) : localStorage.setItem(KEYS_OFF, "1"),
  });
  const made = openDialog(app.me.name || app.me.actor,
    h("p.quiet", {}, `Role ${app.me.role}`,
      app.me.audiences?.length ? `, reads for ${app.me.audiences.join(", ")}` : ""),
    h("dl.keys", {},
      h("dt", {}, h("kbd", {}, "/")), h("dd", {}, "to the search field"),
      h("dt", {}, h("kbd", {}, "j"), " ", h("kbd", {}, "k")), h("dd", {}, "next and previous passage found"),
      h("dt", {}, h("kbd", {}, "Esc")), h("dd", {}, "out of a field or dialog")),
    h("label.check", {}, keys, "Single keys work as shortcuts"),
    h("div.row", {},
      h("button", { type: "button", onclick: () => made.close() }, "Close"),
      h("button.danger", {
        type: "button",
        onclick: async () => {
          await call("auth/session", { method: "DELETE" }).catch(() => null);
          made.close();
          app.me = null;
          shown = "";
          location.hash = "#/";
          start();
        },
      }, "Sign out")));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, dialog, [contenteditable]");
  if (event.key === "Escape" && event.target.matches("input, textarea")) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !app.me) return;
  if (localStorage.getItem(KEYS_OFF)) return;
  if (event.key === "/") {
    event.preventDefault();
    const field = document.querySelector("input[type=search][data-main]");
    if (field) { field.focus(); field.select(); } else app.go(`#/s/${encodeURIComponent(app.scope)}`);
  } else if (event.key === "j" || event.key === "k") {
    step(event.key === "j" ? 1 : -1);
  }
});

/** Focus the next or previous hit. */
function step(by) {
  const links = [...document.querySelectorAll(".hit h2 a")];
  if (!links.length) return;
  const at = links.findIndex((link) => link.closest(".hit").contains(document.activeElement));
  const next = links[Math.min(links.length - 1, Math.max(0, at + by))];
  next.focus();
  next.closest(".hit").scrollIntoView({ block: "nearest" });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  root.focus();
});
window.addEventListener("hashchange", follow);
add(bar);
start();
