// A reading that is corrected: each change is read again at once, and shown in place. Without a script a button does it.
import { announce, fetchPart, place } from "./part.js";

const part = document.getElementById("what-was-read");
const folds = () => [...part.querySelectorAll("details")];
const nameOf = (fold) => fold.querySelector("summary").textContent;
let asked = 0;

async function show(address) {
  const turn = ++asked;
  part.setAttribute("aria-busy", "true");
  for (;;) {
    let answer, text;
    try {
      answer = await fetchPart(address);
      text = await answer.text();
    } catch { return; }
    if (turn !== asked) return;
    if (answer.headers.get("X-Pollex-Ended") || !answer.ok) {
      if (!answer.ok) return location.assign(address.replace("/part", ""));
      // what was folded open stays so, and only then can what was changed take the focus again
      const held = part.contains(document.activeElement) ? document.activeElement.id : "";
      const open = new Set(folds().filter((fold) => fold.open).map(nameOf));
      place(part, text);
      for (const fold of folds()) fold.open ||= open.has(nameOf(fold));
      if (held) document.getElementById(held)?.focus({ preventScroll: true });
      part.removeAttribute("aria-busy");
      delete part.dataset.waiting;
      announce(part.querySelector(".lead, .error")?.textContent ?? "");
      return;
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

part.addEventListener("change", ({ target }) => {
  const form = target.closest("form");
  if (!form || target.id === "name") return;
  const query = new URLSearchParams(new FormData(form));
  const address = form.getAttribute("action");
  history.replaceState(null, "", `${address}?${query}`);
  show(`${address}/part?${query}`);
});
if ("waiting" in part.dataset) show(part.dataset.part);
