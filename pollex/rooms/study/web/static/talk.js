// A message to a system: how long it was typed, and how often something was taken back, go with it.
// What the systems reply is shown while they write; when all have, the page is loaded anew.
import { fetchPart, linesOf } from "./part.js";

const form = document.getElementById("say"), waiting = document.querySelector("[data-stream]");
let first = 0, edits = 0;

form?.addEventListener("input", (event) => {
  first ||= performance.now();
  if (event.inputType?.startsWith("delete")) edits += 1;
});
form?.addEventListener("submit", () => {
  form.elements.ms.value = first ? Math.round(performance.now() - first) : 0;
  form.elements.edits.value = edits;
});
form?.elements.text.focus();

async function listen() {
  const answer = await fetchPart(waiting.dataset.stream);
  for await (const { position, begins, text, ended } of linesOf(answer.body)) {
    if (ended) return location.reload();
    const turn = document.querySelector(`[data-says="${position}"]`), said = turn.querySelector("p");
    said.textContent = (begins ? "" : said.textContent) + text;
    turn.hidden = false;
  }
  throw new Error("the server went away");
}

/** A server that doesn't answer is asked again: nothing that was said is lost. */
const stay = () => listen().catch(() => setTimeout(stay, 2000));
if (waiting) stay();
