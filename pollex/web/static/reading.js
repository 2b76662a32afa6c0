import { announce } from "./part.js";

// A rubric lights the turns that its answer rests on, and a quoted turn lights its rubrics.
const parts = [...document.querySelectorAll(".part")];
const turnsOf = (part) => part.dataset.turns.split(" ").filter(Boolean).map((n) => document.getElementById(`turn-${n}`)).filter(Boolean);

function light(part, on) {
  part.classList.toggle("lit", on);
  for (const turn of turnsOf(part)) turn.classList.toggle("lit", on);
}
for (const part of parts) {
  for (const [begin, end] of [["pointerenter", "pointerleave"], ["focusin", "focusout"]]) {
    part.addEventListener(begin, () => light(part, true));
    part.addEventListener(end, () => light(part, false));
  }
}
for (const turn of document.querySelectorAll(".turn")) {
  const about = parts.filter((part) => turnsOf(part).includes(turn));
  for (const [begin, on] of [["pointerenter", true], ["pointerleave", false], ["focusin", true], ["focusout", false]])
    turn.addEventListener(begin, () => about.forEach((part) => part.classList.toggle("lit", on)));
}

const quoted = [...document.querySelectorAll(".turn")].filter((turn) => turn.querySelector("mark"));
document.addEventListener("pollex:key", ({ detail }) => {
  const by = { "]": 1, "[": -1 }[detail.key];
  if (!by || !quoted.length) return;
  const at = quoted.findIndex((turn) => turn.contains(document.activeElement));
  const next = quoted[(at < 0 ? (by > 0 ? 0 : quoted.length - 1) : at + by + quoted.length) % quoted.length];
  next.scrollIntoView({ block: "center" });
  next.querySelector("a").focus({ preventScroll: true });
});

// Browsers lend the clipboard to pages of this machine and over TLS alone.
const copies = document.querySelector("[data-copy]");
if (copies && navigator.clipboard) copies.hidden = false;
copies?.addEventListener("click", async () => {
  await navigator.clipboard.writeText(location.href);
  announce("The link is copied.");
  copies.textContent = "Copied";
});
