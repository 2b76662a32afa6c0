// A reading that is corrected: each change is read again at once, and shown in place. Without a script a button does it.
import { announce, fetchPart, place } from "./part.js";

const part = document.getElementById("what-was-read");
let asked = 0, folds = new Map();

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
      const open = [...part.querySelectorAll("details")].map((one) => one.open);
      place(part, text);
      [...part.querySelectorAll("details")].forEach((one, n) => (one.open ||= open[n] ?? false));
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
