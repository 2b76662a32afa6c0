// Keys: their functions are in the page's data-key attributes, so the cheatsheet is always correct.
const OFF = "pollex-no-keys";
let first = "", timer, leaving = false, seen = false;

const fields = "input:not([type=checkbox],[type=radio],[type=button],[type=submit]), textarea, select, [contenteditable]";
const shown = (element) => element.getClientRects().length > 0 && !element.disabled;
const keyed = () => [...document.querySelectorAll("[data-key]")].filter((one) => shown(one) || one.dataset.key.startsWith("g "));

function act(element) {
  if (element.matches(fields)) return element.focus();
  element.click();
}

// A key that is held down, or that was meant for the page before, sends nothing from this one; it moves, and leads elsewhere.
function obey(event, element) {
  const sends = element.matches("button:not([type=button])");
  if (!sends || (seen && !event.repeat)) act(element);
}

function typing(event) {
  return event.target.matches?.(fields) || document.querySelector("dialog[open]") || event.isComposing;
}

// A page that was answered is left: keys that come before the next one is there would answer this one again.
document.addEventListener("submit", (event) => (leaving = !event.defaultPrevented));
// One that comes back from the browser's cache is here again; one that is loaded for the first time may be answered already.
addEventListener("pageshow", (event) => (leaving &&= !event.persisted));

// A key can answer what is on this page only once it was drawn: the second frame comes after the first was shown.
requestAnimationFrame(() => requestAnimationFrame(() => (seen = true)));

document.addEventListener("keydown", (event) => {
  if (leaving) return;
  if (event.key === "Escape" && event.target.matches?.(fields)) return event.target.blur();
  if (event.key === "Enter" && event.ctrlKey) {
    const main = keyed().find((one) => one.dataset.key === "Ctrl+Enter");
    if (main && !document.querySelector("dialog[open]")) event.preventDefault(), obey(event, main);
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey || typing(event) || localStorage.getItem(OFF)) return;
  const wanted = first ? `${first} ${event.key}` : event.key;
  clearTimeout(timer);
  if (!first && event.key === "g") {
    first = "g";
    timer = setTimeout(() => (first = ""), 1200);
    return;
  }
  first = "";
  const aliases = { ArrowDown: "j", ArrowUp: "k", o: "Enter" };
  const found = keyed().find((one) => one.dataset.key === wanted || one.dataset.key === aliases[wanted]);
  if (!found) return document.dispatchEvent(new CustomEvent("pollex:key", { detail: event }));
  event.preventDefault();
  obey(event, found);
});

function cheatsheet() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keys of this page";
  const list = document.createElement("dl");
  list.className = "keys";
  for (const one of keyed()) {
    const key = document.createElement("dt"), does = document.createElement("dd");
    const typed = document.createElement("kbd");
    typed.textContent = one.dataset.key;
    key.append(typed);
    does.textContent = one.dataset.does || one.getAttribute("aria-label") || one.textContent.trim();
    list.append(key, does);
  }
  const off = document.createElement("button");
  off.type = "button";
  off.textContent = localStorage.getItem(OFF) ? "Switch single-letter keys on" : "Switch single-letter keys off";
  off.addEventListener("click", () => {
    localStorage.getItem(OFF) ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1");
    dialog.close();
  });
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(title, list, off, " ", close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const button = document.getElementById("cheatsheet");
button.hidden = false;
button.addEventListener("click", cheatsheet);
