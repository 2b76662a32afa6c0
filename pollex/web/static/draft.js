// Words of a draft: what they would do is asked for after 300 ms of rest, or by a button; leaving with words unsaved asks first.
import { fetchPart, place } from "./part.js";

const form = document.getElementById("draft"), shown = document.getElementById("preview");
let timer, asked = 0, pending, changed = false;

async function look(button) {
  const ask = ++asked;
  pending?.abort();
  pending = new AbortController();
  shown.setAttribute("aria-busy", "true");
  try {
    const answer = await fetchPart(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form, button)), signal: pending.signal });
    const text = await answer.text();
    if (ask !== asked) return;
    if (answer.ok) place(shown, text);
    else shown.textContent = saidOf(text);
  } catch { return; } finally { if (ask === asked) shown.removeAttribute("aria-busy"); }
}
function saidOf(text) {
  const { error, remedy } = JSON.parse(text);
  return `There is no preview of this: ${[error, remedy].filter(Boolean).join(". What to do: ")}`;
}
form.addEventListener("input", () => {
  changed = true;
  clearTimeout(timer);
  shown.setAttribute("aria-busy", "true");
  timer = setTimeout(() => look(), 300);
});
form.addEventListener("submit", (event) => {
  if (event.submitter?.formAction.endsWith("/preview")) {
    event.preventDefault();
    look(event.submitter);
  } else changed = false;
});
addEventListener("beforeunload", (event) => changed && event.preventDefault());
