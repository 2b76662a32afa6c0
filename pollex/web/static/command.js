// The command of a form, shown as it is filled in: asked for after 300 ms of rest. Without a script a button shows it.
import { place, site } from "./part.js";

const form = document.getElementById("begin"), shown = document.getElementById("command");
const button = form?.querySelector("[value=look]");
const changes = document.getElementById("changes"), copy = document.getElementById("copy-prompt");
let timer, asked = 0;

async function look() {
  const ask = ++asked, body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (!name.startsWith("key")) body.append(name, value);
  body.set("do", "look");
  try {
    const headers = { "X-Pollex-Site": site, Accept: "application/json" };
    const answer = await fetch(form.action, { method: "POST", body, headers });
    const told = await answer.json();
    if (ask === asked) shown.textContent = told.command ?? `Not yet: ${[told.error, told.remedy].filter(Boolean).join("; ")}`;
    if (ask === asked && changes && "changes" in told) place(changes, told.changes);
  } catch { return; }
}
if (form) {
  button.hidden = true;
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 300); });
  look();
}
if (copy) {
  copy.hidden = false;
  copy.addEventListener("click", () => {
    const edit = document.getElementById("o-edit");
    edit.value = [document.getElementById("o-prompt").value.trimEnd(), copy.dataset.sentence].filter(Boolean).join("\n");
    edit.focus();
    edit.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
