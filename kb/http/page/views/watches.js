/** Watches: addresses that are looked at again and again, and what came of it. */

import { api, call } from "../api.js";
import { announce, fill, h, labelled, openDialog, select } from "../dom.js";
import { notice, pageHeading, waiting } from "../parts.js";
import { count, stateWords, time } from "../words.js";

const EVERY = [
  ["3600", "Every hour"], ["21600", "Every 6 hours"], ["86400", "Every day"], ["604800", "Every week"],
];
const EXPAND = [
  ["none", "This address alone"], ["sitemap", "All pages of this sitemap"], ["feed", "All entries of this feed"],
];

export async function show(root, route, app) {
  app.title("Watches");
  const [scope] = route.parts;
  const list = h("div", {}, waiting(2));
  const address = h("input", {
    type: "url", required: true, placeholder: "https://example.org/rules", maxlength: "2000",
  });
  const every = select(EVERY, "21600");
  const expand = select(EXPAND, "none");
  const told = h("div", {});
  const form = h("form.case.stack", {
    onsubmit: async (event) => {
      event.preventDefault();
      fill(told);
      try {
        await call(api("watches"), { method: "POST", body: {
          scope, url: address.value.trim(), every_s: Number(every.value), expand: expand.value,
        } });
        announce("The address is watched.");
        address.value = "";
        await look(list, scope);
      } catch (error) {
        fill(told, notice("bad", error.message, error.next));
      }
    },
  },
    labelled("Watch an address", address, "What changes there becomes a new version here."),
    h("div.pair", {}, labelled("How often", every), labelled("What of it", expand)),
    told, h("div.row", {}, h("button.main", {}, "Watch")));
  fill(root, h("div.narrow.stack", {}, h("div.head", {}, pageHeading("Watches")), form, list));
  await look(list, scope);
}

async function look(list, scope) {
  let items;
  try {
    ({ items } = await call(api("watches"), { query: { scope } }));
  } catch (error) {
    if (error.status !== 404) throw error;
    return fill(list.parentElement, h("div.empty", {}, h("h1", {}, "No watch list"),
      h("p", {}, "This server watches no addresses.")));
  }
  fill(list, items.length
    ? h("ul.lines", {}, items.map((watch) => row(watch, list, scope)))
    : h("div.empty", {}, h("h2", {}, "No address is watched"),
      h("p", {}, "Pages and files named here are fetched again and again, and what changed is found by the next search.")));
}

function row(watch, list, scope) {
  const change = async (given, said) => {
    try {
      await call(api("watches", String(watch.watch_id)), given);
      announce(said);
      await look(list, scope);
    } catch (error) {
      fill(list, notice("bad", error.message, error.next));
    }
  };
  const paused = watch.state === "paused";
  const turn = () => change(
    { method: "PATCH", body: { state: paused ? "active" : "paused" } },
    paused ? "The address is watched again." : "Watching is paused.");
  const stop = () => {
    const made = openDialog("Stop watching?", h("div.stack", {},
      h("p", {}, watch.url), h("p.quiet", {}, "The documents that came from it stay."),
      h("div.row", {},
        h("button.danger", { type: "button", onclick: () => {
          made.close();
          change({ method: "DELETE" }, "The address is no longer watched.");
        } }, "Stop watching"),
        h("button", { type: "button", onclick: () => made.close() }, "Keep"))));
  };
  const often = EVERY.find(([seconds]) => Number(seconds) === watch.every_s)?.[1]
    || `Every ${count(Math.round(watch.every_s / 60), "minute")}`;
  const states = Object.entries(watch.states || {})
    .map(([state, n]) => `${n} ${stateWords(state)[0].toLowerCase()}`).join(", ");
  return h("li", {},
    h("div.what", {}, h("strong", {}, watch.url),
      h("div.facts", {},
        h("span", {}, often),
        watch.checked_at && h("span", {}, `looked at ${time(watch.checked_at)}`),
        watch.next_at && !paused && h("span", {}, `next ${time(watch.next_at)}`),
        watch.pages > 1 && h("span", {}, count(watch.pages, "page")),
        states && h("span", {}, states)),
      watch.reason && h("p.small.quiet", {}, watch.reason)),
    h("span.row", {},
      h(`span.tag${paused ? "" : ".good"}`, {}, paused ? "Paused" : "Watched"),
      h("button.plain", {
        type: "button", "aria-label": `${paused ? "Resume" : "Pause"} ${watch.url}`, onclick: turn,
      }, paused ? "Resume" : "Pause"),
      h("button.plain", { type: "button", "aria-label": `Stop watching ${watch.url}`, onclick: stop }, "Stop")));
}
