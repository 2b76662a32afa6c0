// What a form still lacks, said beside the button that was pressed. A browser's own bubble is over in seconds, and there is
// none for a field in a folded part. Without a script the browser says it alone.
let pressed;
const lacking = new Map();

const short = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);

function nameOf(control) {
  const own = control.labels?.[0]?.cloneNode(true);
  own?.querySelectorAll("input, select, textarea, kbd").forEach((part) => part.remove());
  const around = control.type === "radio" ? control.closest("fieldset")?.querySelector("legend") : own;
  return short((around?.textContent || control.getAttribute("aria-label") || control.name).trim().replace(/\s+/g, " "));
}

function lackOf(control) {
  const name = `“${nameOf(control)}”`;
  if (!control.validity.valueMissing) return `${name}: ${control.validationMessage.replace(/\.$/, "")}`;
  if (control.type === "checkbox") return `tick ${name}`;
  const chosen = control.type === "radio" || control.type === "file" || control.matches("select");
  return `${chosen ? "choose" : "fill in"} ${name}`;
}

function tell(form) {
  const controls = lacking.get(form);
  lacking.delete(form);
  for (const control of controls) for (let part = control.parentElement; part; part = part.parentElement) if (part.matches("details")) part.open = true;
  const button = pressed?.form === form ? pressed : form.querySelector("button.main, button:not([hidden],[type=button])");
  const note = document.createElement("span");
  note.className = "error lacks";
  note.setAttribute("role", "alert");
  note.textContent = `Not sent yet: ${[...new Set(controls.map(lackOf))].join("; ")}.`;
  forget(form);
  button ? button.after(" ", note) : form.append(note);
  controls[0].focus();
}

const forget = (form) => form.querySelectorAll(".lacks").forEach((note) => note.remove());

document.addEventListener("click", (event) => (pressed = event.target.closest?.("button, input[type=submit]") ?? pressed), true);
document.addEventListener(
  "invalid",
  (event) => {
    const form = event.target.form;
    if (!form) return;
    event.preventDefault();
    // all that a form lacks is told in one sentence
    if (!lacking.has(form)) lacking.set(form, []), setTimeout(() => tell(form));
    lacking.get(form).push(event.target);
  },
  true,
);
document.addEventListener("input", (event) => event.target.form && forget(event.target.form));
