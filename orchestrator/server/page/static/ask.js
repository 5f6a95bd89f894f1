// The form of a question: its length is told, and what stands in it outlives a switch of language or colours.
import { say } from "./page.js";

const KEPT = "ramify.ask";
const form = document.getElementById("ask");
const question = document.getElementById("question");
const told = document.getElementById("length");
const most = Number(question.dataset.most);

function measure() {
  const length = [...question.value.trim()].length;
  const numbers = { n: length.toLocaleString("en"), of: most.toLocaleString("en") };
  const tooLong = length > most ? say("too_long", numbers) : "";
  question.setCustomValidity(tooLong);
  told.hidden = length < most * 0.8;
  told.classList.toggle("over", Boolean(tooLong));
  told.textContent = tooLong || say("length", numbers);
}

function keep() {
  const fields = [...new FormData(form)].filter(([name]) => name !== "form_id");
  sessionStorage.setItem(KEPT, JSON.stringify(fields));
}

function restore() {
  const kept = sessionStorage.getItem(KEPT);
  if (!kept) return;
  sessionStorage.removeItem(KEPT);
  const fields = new Map(JSON.parse(kept));
  for (const field of form.elements) {
    if (!field.name || field.type === "hidden") continue;
    if (field.type === "checkbox") field.checked = fields.has(field.name);
    else if (fields.has(field.name)) field.value = fields.get(field.name);
    if (field !== question && (field.type === "checkbox" ? field.checked : field.value && field.name !== "lane")) form.querySelector(".options").open = true;
  }
}

for (const link of document.querySelectorAll(".look a")) link.addEventListener("click", keep);
question.addEventListener("input", measure);
addEventListener("pageshow", measure);
restore();
measure();
