// Forms with files: sent as they are, with what has been sent so far; then on to the page of the job or batch.
import { announce, say } from "./page.js";

function send(form, body, headers, query = "") {
  const said = form.querySelector("[role=status]");
  const button = form.querySelector("button");
  if (button.disabled) return;
  const request = new XMLHttpRequest();
  request.open("POST", `${form.dataset.to}?${query}`);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.onprogress = (event) => { said.textContent = say("sent", { n: event.loaded.toLocaleString("en"), of: event.total.toLocaleString("en") }); };
  request.onloadend = () => {
    button.disabled = false;
    let found = {};
    try { found = JSON.parse(request.responseText.trim().split("\n").at(-1)); } catch { /* no JSON: the status says it */ }
    if (request.status >= 200 && request.status < 300) {
      if (found.batch_id) location.assign(`/batches/${encodeURIComponent(found.batch_id)}`);
      else if (found.job_id) location.assign(`/jobs/${encodeURIComponent(found.job_id)}`);
      else location.reload();
      return;
    }
    said.textContent = say("failed", { why: found.detail ?? request.status });
    announce(said.textContent);
  };
  button.disabled = true;
  said.textContent = say("sending");
  request.send(body);
}

document.getElementById("upload")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const body = new FormData(event.target);
  const query = new URLSearchParams();
  for (const name of ["source", "namespace"]) { query.set(name, body.get(name)); body.delete(name); }
  send(event.target, body, {}, query);
});
document.getElementById("post-batch")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const [file] = event.target.elements.file.files;
  send(event.target, file, { "Content-Type": "application/jsonl" }, new URLSearchParams({ name: file.name.slice(0, 200) }));
});
