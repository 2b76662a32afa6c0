// A window on a long list: rows are fetched where one scrolls to; the place is kept in the address.
import { announce, fetchPart, place } from "./part.js";

const box = document.getElementById("window");
if (box) {
  const body = document.getElementById("rows"), table = box.querySelector("table");
  const total = Number(box.dataset.total), version = box.dataset.version, size = 100;
  let first = Number(box.dataset.at), shown = body.rows.length, height = 34, asked = 0, going = null, pending;
  const before = spacer(), after = spacer();
  body.before(before);
  body.after(after);
  for (const pager of document.querySelectorAll(".pager")) pager.hidden = true;
  for (const button of document.querySelectorAll("[data-move]")) button.hidden = false;

  function spacer() {
    const part = document.createElement("tbody"), row = part.insertRow(), cell = row.insertCell();
    row.setAttribute("aria-hidden", "true");
    cell.colSpan = 9;
    cell.className = "spacer";
    return part;
  }

  function fit() {
    if (body.rows.length) height = body.getBoundingClientRect().height / body.rows.length;
    before.rows[0].cells[0].style.height = `${first * height}px`;
    after.rows[0].cells[0].style.height = `${Math.max(0, total - first - shown) * height}px`;
    before.hidden = first === 0;
    after.hidden = first + shown >= total;
  }

  async function show(row) {
    const start = Math.max(0, Math.min(row - 30, total - size)), ask = ++asked;
    const address = new URL(location.href);
    address.searchParams.set("at", start);
    address.searchParams.set("n", size);
    address.searchParams.set("version", version);
    pending?.abort();
    pending = new AbortController();
    let answer, text;
    try {
      answer = await fetchPart(exact(address, start), { headers: { "X-Pollex-Part": "rows" }, signal: pending.signal });
      text = await answer.text(); // also ends here when one scrolls on
    } catch { return; }
    if (ask !== asked) return;
    if (answer.status === 409) return announce("More conversations have come: load the page again to see them.");
    const top = box.scrollTop;
    place(body, text);
    first = Number(answer.headers.get("X-Pollex-At"));
    shown = body.rows.length;
    fit();
    box.scrollTop = top;
    arrive();
    announce(`Rows ${first + 1} to ${first + shown} of ${total}`);
  }

  function exact(address, start) {
    address.searchParams.set("at", start);
    return address;
  }

  let timer;
  box.addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const row = Math.floor(box.scrollTop / height);
      const address = new URL(location.href);
      row ? address.searchParams.set("at", row) : address.searchParams.delete("at");
      history.replaceState(null, "", address);
      const visible = Math.ceil(box.clientHeight / height);
      if (row < first || row + visible > first + shown) show(row);
    }, 60);
  }, { passive: true });

  function move(by) {
    const links = [...body.querySelectorAll("td:first-child a")], at = links.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? Math.max(0, Math.floor(box.scrollTop / height) - first) : 0) : at + by;
    if (links[next]) return links[next].focus();
    const row = first + next;
    if (row < 0 || row >= total) return;
    going = row;
    show(row);
  }
  // Rows that one scrolled to may come before those that a key asked for.
  function arrive() {
    const link = going === null ? undefined : body.querySelectorAll("td:first-child a")[going - first];
    going = null;
    link?.focus();
  }
  for (const button of document.querySelectorAll("[data-move]"))
    button.addEventListener("click", () => move(Number(button.dataset.move)));

  fit();
  const wanted = Number(new URL(location.href).searchParams.get("at") ?? 0);
  if (wanted) {
    box.scrollTop = wanted * height;
    if (wanted < first || wanted >= first + shown) show(wanted);
  }
}
