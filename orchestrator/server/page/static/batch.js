// One batch: its page is renewed while its jobs run, whenever the server tells of new accounts.
import { fragment, localTimes, offline } from "./page.js";

const head = document.getElementById("batch");
let renewing = false;
let again = false;

async function renew() {
  if (renewing) { again = true; return; }
  renewing = true;
  try {
    const found = await fragment(location.href);
    const fresh = found.getElementById("batch");
    offline(!fresh);
    if (fresh) {
      const focused = document.activeElement?.getAttribute("href");
      document.getElementById("main").replaceChildren(...[...found.body.childNodes].map((node) => document.importNode(node, true)));
      localTimes();
      if (focused) document.querySelector(`main a[href="${CSS.escape(focused)}"]`)?.focus();
    }
    await new Promise((go) => setTimeout(go, 1000));
  } finally { renewing = false; }
  if (again) { again = false; renew(); }
}

if (head.dataset.open === "1") {
  const source = new EventSource(`/v1/batches/${encodeURIComponent(head.dataset.batch)}/events`);
  source.addEventListener("accounts", renew);
  source.addEventListener("end", () => { source.close(); renew(); });
  const look = () => renew().catch(() => offline(true));
  source.onopen = () => offline(false);
  source.onerror = async () => {
    await look();
    if (source.readyState !== EventSource.CLOSED) return;
    while (document.getElementById("batch").dataset.open === "1") {
      await new Promise((go) => setTimeout(go, 3000));
      await look();
    }
  };
}
