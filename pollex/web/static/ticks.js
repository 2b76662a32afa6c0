// Ticks of a list: x ticks the row at hand. Rows that were scrolled away stay ticked, and are sent with the others.
import { announce } from "./part.js";

const rows = document.querySelector("table.rows tbody:has(input[type=checkbox])");
const boxes = () => [...rows.querySelectorAll("input[type=checkbox]")];
const ticked = new Set();
let at = null;

if (rows) {
  const form = boxes()[0].form, name = boxes()[0].name;
  const note = () => boxes().forEach((box) => (box.checked ? ticked.add(box.value) : ticked.delete(box.value)));
  note();
  rows.addEventListener("focusin", (event) => (at = event.target.closest("tr")));
  rows.addEventListener("change", () => {
    note();
    announce(`${ticked.size} ticked`);
  });
  new MutationObserver(() => boxes().forEach((box) => (box.checked = ticked.has(box.value)))).observe(rows, { childList: true });
  form.addEventListener("formdata", (event) => {
    const here = new Set(boxes().map((box) => box.value));
    for (const value of ticked) if (!here.has(value)) event.formData.append(name, value);
  });

  const step = (by) => {
    const links = boxes().map((box) => box.closest("tr").querySelector("a")), now = links.findIndex((link) => link.closest("tr") === at);
    links[Math.max(0, Math.min(links.length - 1, now < 0 ? 0 : now + by))].focus();
  };
  for (const button of document.querySelectorAll("[data-step]")) {
    button.hidden = false;
    button.addEventListener("click", () => step(Number(button.dataset.step)));
  }
  for (const button of document.querySelectorAll("[data-tick]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const box = at?.isConnected && at.querySelector("input[type=checkbox]");
      if (box) box.click();
      else announce("No row is at hand: j goes to the first one.");
    });
  }
}
