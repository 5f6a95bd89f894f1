// What every page has: passages in a panel, keys, local times, plans on the same page. Pages work without it, too.
const policy = globalThis.trustedTypes?.createPolicy("ramify", { createHTML: (html) => html });
export const words = JSON.parse(document.body.dataset.words);
export const say = (key, values = {}) => (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
// Characters that nobody sees, as shared/hidden.py takes them out; joiners stay in scripts that spell with them.
const SPELT = ["Arabic", "Syriac", "Devanagari", "Bengali", "Gujarati", "Gurmukhi", "Kannada", "Malayalam", "Oriya", "Sinhala", "Tamil", "Telugu", "Khmer", "Myanmar", "Mongolian"].map((name) => `\\p{Script=${name}}`).join("");
const HIDDEN = new RegExp([
  "(?![\\u200c\\u200d\\ufe0e\\ufe0f])[\\p{Default_Ignorable_Code_Point}\\p{Cs}\\p{Co}\\p{Noncharacter_Code_Point}\\ufff0-\\ufffc]",
  `(?<![${SPELT}\\p{M}\\p{Extended_Pictographic}])[\\u200c\\u200d]`, "(?<![\\p{Extended_Pictographic}#*0-9])[\\ufe0e\\ufe0f]",
  "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f]",
].join("|"), "gu");
export const oneLine = (text) => String(text ?? "").replace(/[\u2028\u2029\u2800]/g, " ").replace(HIDDEN, (c) => (c === "\r" ? " " : "")).split(/\s+/).join(" ").trim();
// Stands over the page, so that nothing shifts.
export function offline(lost) {
  const told = document.getElementById("lost");
  if (told.hidden !== lost) return;
  told.hidden = !lost;
  told.textContent = lost ? say("offline") : "";
}
export const announce = (text) => { document.getElementById("said").textContent = text; };

// HTML of this server, where every word of it was escaped. The one place where text becomes elements.
export async function fragment(url, options = {}) {
  const response = await fetch(url, { ...options, headers: { "X-Fragment": "1" }, credentials: "same-origin" });
  if (response.redirected && new URL(response.url).pathname === "/login") location.assign(response.url);
  const html = await response.text();
  return new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");
}

export function localTimes(root = document) {
  const two = (number) => String(number).padStart(2, "0");
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.dateTime;
    time.textContent = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  }
}

const panel = document.getElementById("panel");
async function openPanel(url) {
  const inside = (await fragment(url)).querySelector("[data-title]");
  if (!inside) { location.assign(url); return; }
  document.getElementById("panel-title").textContent = inside.dataset.title;
  document.getElementById("panel-body").replaceChildren(document.importNode(inside, true));
  if (!panel.open) {
    panel.showModal();
    history.pushState({ panel: true }, "");
  }
  panel.scrollTop = 0;
  panel.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}

// Back closes the panel; what closes it otherwise goes back over its entry of the history.
panel.addEventListener("close", () => { if (history.state?.panel) history.back(); });
addEventListener("popstate", () => { if (panel.open) panel.close(); });
if (history.state?.panel) history.replaceState(null, "");

const places = { a: "/", j: "/jobs", b: "/batches", c: "/corpus", o: "/operate" };
let afterG = 0;

function move(step) {
  const rows = [...document.querySelectorAll("[data-row] a, .tree [role=treeitem]")];
  rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(document.activeElement) + step))]?.focus();
}

function onKey(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) { event.target.form.requestSubmit(); return; }
  if (typing && event.key === "Escape") { event.target.blur(); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (afterG > Date.now() - 1000 && places[event.key]) { location.assign(places[event.key]); return; }
  afterG = event.key === "g" ? Date.now() : 0;
  if (event.key === "/") {
    event.preventDefault();
    const field = document.querySelector("#question, input[type=search]");
    if (field) field.focus(); else location.assign("/");
  } else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
}

function onClick(event) {
  const opener = event.target.closest("[data-open]");
  if (opener?.tagName === "BUTTON") { document.getElementById(opener.dataset.open).showModal(); return; }
  if (event.target.tagName === "DIALOG") { event.target.close(); return; }
  const link = event.target.closest("a[data-panel]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openPanel(link.href).catch(() => location.assign(link.href));
}

// A form that is on its way is not sent a second time, by whatever key or button.
function onlyOnce(event) {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "1";
}

async function onSubmit(event) {
  const button = event.submitter;
  if (!button?.hasAttribute("data-preview")) { onlyOnce(event); return; }
  event.preventDefault();
  const place = document.getElementById("preview");
  announce(say("planning"));
  button.disabled = true;
  try {
    const found = await fragment(button.formAction, { method: "POST", body: new URLSearchParams(new FormData(event.target)) });
    const plan = found.querySelector(".plan, [role=alert]");
    if (plan) place.replaceChildren(document.importNode(plan, true));
    place.scrollIntoView({ block: "nearest" });
  } finally { button.disabled = false; }
}

document.addEventListener("keydown", onKey);
document.addEventListener("click", onClick);
document.addEventListener("submit", onSubmit);
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });
localTimes();
