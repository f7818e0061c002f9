/** Signing in with an API key, or at the organisation's identity provider. */

import { call } from "../api.js";
import { brand, fill, h, labelled } from "../dom.js";
import { notice } from "../parts.js";

/** Show the door; `why` says what made it necessary. */
export function show(root, app, why = "") {
  app.title("Sign in");
  root.dataset.view = "signin";
  const key = h("input", {
    type: "password", name: "key", autocomplete: "current-password", required: true,
    spellcheck: "false", "data-focus": "", placeholder: "kb_…",
  });
  const button = h("button.main", {}, "Sign in");
  const told = h("div", {});
  const form = h("form.stack", {
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      fill(told);
      try {
        await call("auth/session", { method: "POST", body: { key: key.value.trim() } });
        fill(root);
        await app.signedIn();
      } catch (error) {
        const wrong = error.status === 401 || error.status === 422;
        fill(told, notice("bad",
          wrong ? "This key is not known here, or it has expired." : error.message,
          wrong ? "Look for a missing character, or ask an administrator for a new one." : error.next));
        key.focus();
      } finally {
        button.disabled = false;
      }
    },
  }, labelled("API key", key, "Given once when it was made: kb keys create."), told, button);
  const provider = h("div", {});
  fill(root, h("div.door", {},
    h("h1.brand", {}, brand(), "Knowledge base"),
    h("div.stack", {},
      why && notice("warn", why),
      form,
      provider)));
  key.focus();
  offerProvider(provider);
}

/** The way over the identity provider, where the server knows one: it answers by sending there. */
async function offerProvider(place) {
  const query = new URLSearchParams({ next: `/${location.hash}` });
  const answer = await fetch("auth/login", { redirect: "manual" }).catch(() => null);
  if (answer?.type !== "opaqueredirect") return;
  fill(place, h("a.button", { href: `auth/login?${query}` }, "Sign in with your organisation"));
}
