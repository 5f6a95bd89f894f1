// One job: its tree drawn as it grows, from the server's events; asked for again and again where those do not come.
import { announce, fragment, localTimes, offline, oneLine, say, words } from "./page.js";

const head = document.getElementById("job");
const tree = document.querySelector(".tree");
const box = document.querySelector(".tree-box");
const live = box?.classList.contains("live") ?? false;
const blank = document.getElementById("node-template")?.content.firstElementChild;
const detail = document.getElementById("node-detail");
const ENDED = new Set(["done", "failed", "cancelled", "expired"]);
const LEAF = new Set(["waiting", "pending", "searched", "done", "failed"]);
const SHAPES = { done: "done", failed: "failed", expired: "failed", cancelled: "failed", queued: "waiting" };
const rows = new Map();
let selected = "";
let rowHeight = 0;

function before(one, other) {
  const [a, b] = [one, other].map((id) => id.split(".").map(Number));
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) if (a[at] !== b[at]) return a[at] - b[at];
  return a.length - b.length;
}

function seconds(ms) {
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 119500 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60000)} min`;
}

function fill(element, row) {
  const put = (slot, text) => {
    const place = element.querySelector(`[data-slot=${slot}]`);
    if (place.textContent !== text) place.textContent = text;
  };
  element.className = `node d${Math.min(6, row.depth)} s-${row.state}`;
  element.dataset.id = row.id;
  element.setAttribute("aria-level", row.depth);
  element.querySelector("use").setAttribute("href", `#i-${row.state}`);
  element.title = row.query;
  put("word", words[`leaf_${row.state}`] ?? row.state);
  put("id", row.id);
  put("facet", words[`facet_${row.facet}`] ?? row.facet);
  put("query", row.query);
  put("hits", row.hits == null ? "" : say(row.hits === 1 ? "hit" : "hits", { n: row.hits }));
  put("score", row.score == null ? "" : String(Number(Number(row.score).toPrecision(4))));
  put("ms", row.ms == null ? "" : seconds(row.ms));
}

// Rows stand at their places by transforms: whatever comes between them, nothing on the page shifts.
function place() {
  const ids = [...rows.keys()].sort(before);
  if (live) {
    rowHeight ||= tree.querySelector(".node")?.offsetHeight ?? 0;
    ids.forEach((id, number) => { rows.get(id).element.style.transform = `translateY(${number * rowHeight}px)`; });
    tree.style.height = `${ids.length * rowHeight}px`;
  }
  ids.forEach((id, number) => {
    const { element } = rows.get(id);
    if (tree.children[number] !== element) tree.insertBefore(element, tree.children[number] ?? null);
  });
  box.querySelector(".tree-empty").hidden = ids.length > 0;
}

function update(id, change) {
  const known = rows.get(id);
  const row = { id, depth: id.split(".").length - 1, facet: "", query: "", state: "pending", ...known?.row, ...change };
  const element = known?.element ?? blank.cloneNode(true);
  rows.set(id, { row, element });
  fill(element, row);
  if (!known) {
    element.style.transitionProperty = "none";
    tree.append(element);
    if (rows.size === 1) element.tabIndex = 0;
    place();
    requestAnimationFrame(() => { element.style.transitionProperty = ""; });
  }
  if (selected === id) describe(row);
}

function describe(row) {
  const lines = [row.query];
  if (row.asked) lines.push(say("planned_as", { query: row.asked }));
  if (row.waits?.length && row.state === "waiting") lines.push(say("waits_for", { ids: row.waits.join(", ") }));
  if (row.why) lines.push(say("for_gap", { what: row.why }));
  if (row.note) lines.push(say("best", { title: row.note }));
  if (row.error) lines.push(row.error);
  detail.textContent = `${row.id} · ${lines.join("\n")}`;
}

function select(element) {
  const found = element && rows.get(element.dataset.id);
  if (!found) return;
  for (const { element: other } of rows.values()) { other.setAttribute("aria-selected", "false"); other.tabIndex = -1; }
  element.setAttribute("aria-selected", "true");
  element.tabIndex = 0;
  selected = found.row.id;
  describe(found.row);
}

function onTreeKey(event) {
  const all = [...tree.children];
  const at = all.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1, Enter: at, " ": at }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = all[Math.max(0, Math.min(all.length - 1, to))];
  next?.focus();
  select(next);
}

// Events

const began = new Map();
function onEvent(type, data, at) {
  if (type === "state") onState(data.state);
  else if (type === "node" || type === "bound") onNode(type, data, at);
  else if (type === "nodes") { for (const node of JSON.parse(data.nodes)) onNode("node", { node }, at); }
  else if (type === "leaf" && rows.has(data.id)) {
    const change = { state: LEAF.has(data.status) ? data.status : "pending", error: oneLine(data.error) };
    if (/^\d+$/.test(data.hits ?? "")) change.hits = Number(data.hits);
    if (data.score) change.score = Number(data.score);
    if (ENDED.has(data.status) && began.has(data.id)) change.ms = Math.max(0, at - began.get(data.id));
    update(data.id, change);
    count();
  } else if (type === "routed") document.getElementById("m-strategy").textContent = oneLine(read(data.route).strategy);
}

const read = (value) => (typeof value === "string" ? JSON.parse(value) : value);

function onNode(type, data, at) {
  const node = read(data.node);
  if (!/^0(\.\d{1,2})+$/.test(node?.id)) return;
  const waits = node.depends_on ?? [];
  const state = node.kind === "branch" ? "branch" : waits.length && type === "node" ? "waiting" : "pending";
  const more = (node.variants?.length ?? 0) > 1 ? ` (+${node.variants.length - 1})` : "";
  const asked = node.asked && node.asked !== node.query ? oneLine(node.asked) : "";
  began.set(node.id, at);
  update(node.id, { facet: String(node.facet), query: oneLine(node.query) + more, asked, why: oneLine(node.gap?.what), waits, state });
  count();
}

function count() {
  const leaves = [...rows.values()].filter(({ row }) => row.state !== "branch");
  const ended = leaves.filter(({ row }) => row.state === "done" || row.state === "failed").length;
  document.getElementById("m-leaves").textContent = `${ended}/${leaves.length}`;
}

function onState(state) {
  if (state === head.dataset.state) return;
  head.dataset.state = state;
  const steps = [...head.querySelectorAll("[data-stage]")];
  const now = steps.findIndex((step) => step.dataset.stage === state);
  if (now >= 0) steps.forEach((step, at) => {
    step.className = state === "done" || at < now ? "past" : at === now ? "now" : "ahead";
    if (at === now) step.setAttribute("aria-current", "step"); else step.removeAttribute("aria-current");
  });
  const badge = head.querySelector("#state .badge");
  badge.className = `badge s-${state}`;
  badge.querySelector("use").setAttribute("href", `#i-${SHAPES[state] ?? "searched"}`);
  badge.querySelector("span").textContent = words[`state_${state}`] ?? state;
  if (ENDED.has(state)) finish();
}

let finished = false;
async function finish() {
  if (finished) return;
  finished = true;
  head.dataset.open = "0";
  source?.close();
  await Promise.all([answer(), refresh()]);
  const { state } = head.dataset;
  announce(state === "done" ? say("arrived") : say("ended", { state: words[`state_${state}`] ?? state }));
}

async function answer() {
  const found = await fragment(location.pathname);
  const take = (place, fresh) => { if (place && fresh) place.replaceChildren(...document.importNode(fresh, true).childNodes); };
  take(document.getElementById("answer"), found.getElementById("answer"));
  for (const part of [".meter", ".stages", ".actions"]) take(head.querySelector(part), found.querySelector(`#job ${part}`));
  localTimes();
}

// What no event tells: cost, files; and all of it where events do not come

async function refresh() {
  const response = await fetch(`${location.pathname}/state`, { credentials: "same-origin" });
  if (!response.ok) { offline(response.status === 503); return null; }
  offline(false);
  const now = await response.json();
  document.getElementById("m-calls").textContent = now.calls.toLocaleString("en");
  document.getElementById("m-tokens").textContent = now.tokens.toLocaleString("en");
  if (!tree || !now.open) document.getElementById("m-leaves").textContent = `${now.done}/${now.total}`;
  if (tree && (!connected || !now.open)) for (const row of now.rows) update(row.id, row);
  return now;
}

async function poll() {
  while (head.dataset.open === "1") {
    await new Promise((go) => setTimeout(go, connected ? 2000 : 700));
    if (head.dataset.open !== "1") return;
    const now = await refresh().catch(() => { offline(true); return null; });
    if (now && (!connected || !now.open)) onState(now.state);
  }
}

function tick() {
  if (head.dataset.open !== "1") return;
  document.getElementById("m-time").textContent = seconds(Math.max(0, Date.now() - Number(head.dataset.began) * 1000));
  setTimeout(tick, 100);
}

const TYPES = ["state", "node", "nodes", "bound", "leaf", "routed"];
let source = null;
let connected = false;
function listen() {
  source = new EventSource(`/v1/jobs/${encodeURIComponent(head.dataset.job)}/events`);
  const take = (event) => {
    try {
      const data = JSON.parse(event.data);
      onEvent(data.type ?? event.type, data.data ?? data, Number(event.lastEventId.split("-")[0]) || Date.now());
    } catch (fault) { console.warn(fault); }
  };
  source.onmessage = take;
  for (const type of TYPES) source.addEventListener(type, take);
  source.addEventListener("end", (event) => onState(JSON.parse(event.data).state));
  source.onopen = () => { connected = true; offline(false); };
  source.onerror = () => { connected = false; };  // browsers connect again by themselves, behind the last event
}

if (tree) {
  for (const row of JSON.parse(tree.dataset.rows)) {
    const element = tree.querySelector(`[data-id="${CSS.escape(row.id)}"]`);
    if (element) { rows.set(row.id, { row, element }); element.title = row.query; }
  }
  if (tree.firstElementChild) tree.firstElementChild.tabIndex = 0;
  if (live) place();
  tree.addEventListener("keydown", onTreeKey);
  tree.addEventListener("click", (event) => select(event.target.closest(".node")));
  addEventListener("resize", () => { rowHeight = 0; if (live) place(); });
}
if (head.dataset.open === "1" && !new URLSearchParams(location.search).has("early")) {
  tick();
  if (tree) listen();
  poll();
}
