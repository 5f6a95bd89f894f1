// Asks a question over HTTP, follows its events and prints the answer: node ask.mjs QUESTION (a browser has fetch, too).
// RAMIFY_URL names the server, RAMIFY_KEY an API key.
const url = process.env.RAMIFY_URL ?? "http://127.0.0.1:8321";
const key = process.env.RAMIFY_KEY ? { Authorization: `Bearer ${process.env.RAMIFY_KEY}` } : {};

async function ramify(path, options = {}) {
  const response = await fetch(url + path, { ...options, headers: { ...key, ...options.headers } });
  if (!response.ok) throw new Error((await response.json()).detail); // problem+json: a sentence
  return response;
}

async function* events(path) {
  let text = "";
  for await (const chunk of (await ramify(path)).body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.match(new RegExp(`^${name}: (.*)$`, "m"))?.[1];
      if (field("data")) yield { id: field("id"), type: field("event"), data: JSON.parse(field("data")) };
    }
  }
}

const headers = { "Content-Type": "application/json" };
const body = JSON.stringify({ question: process.argv.slice(2).join(" ") });
const { job_id } = await (await ramify("/v1/jobs", { method: "POST", headers, body })).json();
for await (const { type, data } of events(`/v1/jobs/${job_id}/events`)) console.error(type, data.state ?? data.id ?? "");
const { summary } = await (await ramify(`/v1/jobs/${job_id}/result`)).json();
console.log(summary.text);
for (const { number, path } of summary.citations) console.log(`  [${number}] ${path}`);
