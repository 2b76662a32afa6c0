// Files that are chosen or dropped: sent with a bar that tells how far they are. Without a script the form sends them.
import { announce, site } from "./part.js";

const form = document.getElementById("bring");
const input = form.querySelector("input[type=file]");
const [bringing, fault] = [form.querySelector(".bringing"), form.querySelector(".error")];
const bar = form.querySelector("progress");
const MB = 1e6;

form.querySelector(".dropping").hidden = false;

function refuse(text) {
  fault.textContent = text;
  fault.hidden = !text;
  bringing.hidden = true;
  form.classList.remove("busy");
}

function send(files) {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (!files.length) return;
  if (size > Number(form.dataset.most)) return refuse(`${Math.ceil(size / MB)} MB are more than this server takes at once.`);
  const data = new FormData();
  data.append("site", site);
  for (const file of files) data.append("files", file, file.name);
  const request = new XMLHttpRequest();
  const began = Date.now();
  refuse("");
  bringing.hidden = false;
  form.classList.add("busy");
  let told = 0;
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    bar.value = loaded / total;
    const left = ((Date.now() - began) / loaded) * (total - loaded) / 1000;
    const wait = left > 2 ? `, about ${Math.ceil(left)} s more` : "";
    form.querySelector(".how-far").textContent = `${(loaded / MB).toFixed(1)} of ${(total / MB).toFixed(1)} MB${wait}`;
    if (Math.floor((loaded / total) * 4) > told) announce(`${Math.round((loaded / total) * 100)} percent sent`), (told = Math.floor((loaded / total) * 4));
  });
  request.upload.addEventListener("load", () => (form.querySelector(".how-far").textContent = "Sent. It is being looked at."));
  request.addEventListener("load", () => {
    const { ok, address, error, remedy } = request.response ?? {};
    if (ok) return location.assign(address);
    refuse([error ?? `The server said ${request.status}.`, remedy].filter(Boolean).join(": "));
  });
  request.addEventListener("error", () => refuse("The connection broke, and nothing was kept. Send it again."));
  request.addEventListener("abort", () => refuse("Stopped. Nothing was kept."));
  form.querySelector(".stop").onclick = () => request.abort();
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  request.send(data);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send([...input.files]);
});
input.addEventListener("change", () => send([...input.files]));
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop") send([...event.dataTransfer.files]);
  });
}
