// The command of a form, shown as it is filled in: asked for after 300 ms of rest. Without a script a button shows it.
import { site } from "./part.js";

const form = document.getElementById("begin"), shown = document.getElementById("command");
const button = form?.querySelector("[value=look]");
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
  } catch { return; }
}
if (form) {
  button.hidden = true;
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 300); });
  look();
}
