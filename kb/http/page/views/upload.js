/** Upload: files in, and what becomes of each, while it happens. */

import { api, call } from "../api.js";
import { announce, fill, h, icon, labelled, select } from "../dom.js";
import { documentLink, notice, pageHeading, stateTag, waiting } from "../parts.js";
import { stateWords, time } from "../words.js";

const POLL_MS = 1200;

export async function show(root, route, app) {
  app.title("Upload");
  const [scope] = route.parts;
  const told = h("div", {});
  const list = h("div", {}, waiting(1));
  const readers = select([
    ["self", "Only me, for now"], ["scope", "Everyone in this scope"], ["named", "Named audiences"],
  ], "self");
  const names = h("input", { type: "text", placeholder: "hr, management", maxlength: "2000" });
  const named = labelled("Audiences", names, "Names separated by commas.");
  named.hidden = true;
  readers.addEventListener("change", () => { named.hidden = readers.value !== "named"; });
  const file = h("input", { type: "file", multiple: true, id: "files", onchange: () => take([...file.files]) });
  const drop = h("div.drop", {
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      take([...event.dataTransfer.files]);
    },
  },
    h("h2", {}, "Drop files here"),
    h("p.quiet", {}, "PDF, Word, PowerPoint, Excel, HTML, Markdown, text, JSON, e-mail and more"),
    file, h("label.button.main", { for: "files" }, icon("upload"), "Choose files"));
  fill(root, h("div.narrow.stack", {},
    h("div.head", {}, pageHeading("Upload"),
      h("div.tools", {}, labelled("Who may read them", readers))),
    named, drop, told,
    h("h2", {}, "What became of them"), list));

  let stopped = false;
  let timer = 0;
  const seen = new Map(); // job id to what was announced of it

  async function take(files) {
    fill(told);
    for (const one of files) {
      const form = new FormData();
      form.set("scope", scope);
      if (readers.value === "scope") form.set("audiences", "");
      if (readers.value === "named") form.set("audiences", names.value);
      form.set("file", one); // last, so that what concerns it is known before it streams
      fill(told, notice("", `Sending ${one.name} …`));
      try {
        await call(api("documents"), { method: "POST", body: form });
        fill(told);
        announce(`${one.name} was sent.`);
      } catch (error) {
        fill(told, notice("bad", `${one.name}: ${error.message}`, error.next));
        break;
      }
    }
    file.value = "";
    look();
  }

  async function look() {
    clearTimeout(timer);
    try {
      const { items } = await call(api("jobs"), { query: { scope, limit: 20 } });
      if (stopped) return;
      draw(items);
      if (items.some((job) => job.state === "queued" || job.state === "running")) {
        timer = setTimeout(look, POLL_MS);
      }
    } catch (error) {
      if (stopped) return;
      fill(list, notice("bad", error.message, error.next));
      if (error.status === 0 || error.status >= 500) timer = setTimeout(look, POLL_MS * 4);
    }
  }

  function draw(items) {
    fill(list, items.length
      ? h("ul.lines", {}, items.map((job) => row(job, scope)))
      : h("p.quiet", {}, "Nothing was uploaded here yet."));
    for (const job of items) {
      const said = job.documents.map((one) => stateWords(one.state)[0]).join(", ") || stateWords(job.state)[0];
      if (seen.has(job.job_id) && seen.get(job.job_id) !== said) announce(`${job.name}: ${said}`);
      seen.set(job.job_id, said);
    }
  }

  await look();
  return () => { stopped = true; clearTimeout(timer); };
}

function row(job, scope) {
  const [one] = job.documents;
  const over = job.state === "done" || job.state === "failed";
  const name = job.name || one?.document_id || job.job_id;
  const reason = one?.reason || job.reason;
  return h("li", {},
    h("div.what", {},
      over && one && one.state !== "failed"
        ? h("a", { href: documentLink(scope, one.document_id) }, name) : h("strong", {}, name),
      h("p.facts", {}, time(job.created_at)),
      reason && h("p.small.quiet", {}, reason)),
    over ? stateTag(one && one.state !== "pending" ? one.state : job.state)
      : h("span.tag.warn.turning", {}, stateWords(job.state)[0]));
}
